<<<<<<<< HEAD:router/portal-web/built-console/assets/empty-BbMsaPbC.js
import{f as e}from"./shim-FwH_fsSh.js";var t=e();function n({title:e,hint:n,children:r}){return(0,t.jsxs)(`div`,{className:`empty`,children:[(0,t.jsx)(`h2`,{children:e}),(0,t.jsx)(`p`,{children:n}),r&&(0,t.jsx)(`div`,{className:`actions`,children:r})]})}export{n as t};
========
import{f as e}from"./shim-CFBCtf6w.js";var t=e();function n({title:e,hint:n,children:r}){return(0,t.jsxs)(`div`,{className:`empty`,children:[(0,t.jsx)(`h2`,{children:e}),(0,t.jsx)(`p`,{children:n}),r&&(0,t.jsx)(`div`,{className:`actions`,children:r})]})}export{n as t};
>>>>>>>> 86cea802 (router: the portal's test chat is a playground with every parameter, tools, images, comparison and Markdown, and its requests are requests of the API):router/portal-web/built-console/assets/empty-PxHORHeo.js
