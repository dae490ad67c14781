<<<<<<<< HEAD:router/portal-web/built/assets/useControlled-8VkShOIz.js
import{g as e,m as t}from"./messages-vltWrATR.js";var n=e(t(),1);function r({controlled:e,default:t,name:r,state:i=`value`}){let{current:a}=n.useRef(e!==void 0),[o,s]=n.useState(()=>t);return[a&&e!==void 0?e:o,n.useCallback(e=>{a||s(e)},[])]}export{r as t};
========
import{g as e,m as t}from"./messages-Dfq8LLnV.js";var n=e(t(),1);function r({controlled:e,default:t,name:r,state:i=`value`}){let{current:a}=n.useRef(e!==void 0),[o,s]=n.useState(()=>t);return[a&&e!==void 0?e:o,n.useCallback(e=>{a||s(e)},[])]}export{r as t};
>>>>>>>> f8581d78 (docs, router: pages and built portal with single requests):router/portal-web/built/assets/useControlled-BRx3dtII.js
