<<<<<<<< HEAD:router/portal-web/built/assets/now-qDI28KqR.js
import{_ as e,y as t}from"./messages-DhXGgnRT.js";var n=t(e(),1),r=3e4;function i(){let[e,t]=(0,n.useState)(()=>Date.now());return(0,n.useEffect)(()=>{let e=setInterval(()=>t(Date.now()),r);return()=>clearInterval(e)},[]),e}export{i as t};
========
import{_ as e,y as t}from"./messages-MGzktD2f.js";var n=t(e(),1),r=3e4;function i(){let[e,t]=(0,n.useState)(()=>Date.now());return(0,n.useEffect)(()=>{let e=setInterval(()=>t(Date.now()),r);return()=>clearInterval(e)},[]),e}export{i as t};
>>>>>>>> 86cea802 (router: the portal's test chat is a playground with every parameter, tools, images, comparison and Markdown, and its requests are requests of the API):router/portal-web/built/assets/now-B1llW4uw.js
