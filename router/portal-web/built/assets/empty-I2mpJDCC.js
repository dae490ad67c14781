<<<<<<<< HEAD:router/portal-web/built/assets/empty-I2mpJDCC.js
import{f as e}from"./messages-vltWrATR.js";var t=e();function n({title:e,hint:n,children:r}){return(0,t.jsxs)(`div`,{className:`empty`,children:[(0,t.jsx)(`h2`,{children:e}),(0,t.jsx)(`p`,{children:n}),r&&(0,t.jsx)(`div`,{className:`actions`,children:r})]})}export{n as t};
========
import{f as e}from"./messages-Dfq8LLnV.js";var t=e();function n({title:e,hint:n,children:r}){return(0,t.jsxs)(`div`,{className:`empty`,children:[(0,t.jsx)(`h2`,{children:e}),(0,t.jsx)(`p`,{children:n}),r&&(0,t.jsx)(`div`,{className:`actions`,children:r})]})}export{n as t};
>>>>>>>> f8581d78 (docs, router: pages and built portal with single requests):router/portal-web/built/assets/empty-hohvo70a.js
