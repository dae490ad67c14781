<<<<<<<< HEAD:router/portal-web/built/assets/useControlled-ZcGplgKv.js
import{_ as e,y as t}from"./messages-DhXGgnRT.js";var n=t(e(),1);function r({controlled:e,default:t,name:r,state:i=`value`}){let{current:a}=n.useRef(e!==void 0),[o,s]=n.useState(()=>t);return[a&&e!==void 0?e:o,n.useCallback(e=>{a||s(e)},[])]}export{r as t};
========
import{_ as e,y as t}from"./messages-MGzktD2f.js";var n=t(e(),1);function r({controlled:e,default:t,name:r,state:i=`value`}){let{current:a}=n.useRef(e!==void 0),[o,s]=n.useState(()=>t);return[a&&e!==void 0?e:o,n.useCallback(e=>{a||s(e)},[])]}export{r as t};
>>>>>>>> 86cea802 (router: the portal's test chat is a playground with every parameter, tools, images, comparison and Markdown, and its requests are requests of the API):router/portal-web/built/assets/useControlled-JyIRh5zX.js
