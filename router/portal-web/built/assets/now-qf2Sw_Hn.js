<<<<<<<< HEAD:router/portal-web/built/assets/now-B-WBe4WW.js
import{g as e,m as t}from"./messages-vltWrATR.js";var n=e(t(),1),r=3e4;function i(){let[e,t]=(0,n.useState)(()=>Date.now());return(0,n.useEffect)(()=>{let e=setInterval(()=>t(Date.now()),r);return()=>clearInterval(e)},[]),e}export{i as t};
========
import{g as e,m as t}from"./messages-Dfq8LLnV.js";var n=e(t(),1),r=3e4;function i(){let[e,t]=(0,n.useState)(()=>Date.now());return(0,n.useEffect)(()=>{let e=setInterval(()=>t(Date.now()),r);return()=>clearInterval(e)},[]),e}export{i as t};
>>>>>>>> f8581d78 (docs, router: pages and built portal with single requests):router/portal-web/built/assets/now-qf2Sw_Hn.js
