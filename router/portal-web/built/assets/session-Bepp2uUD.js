<<<<<<<< HEAD:router/portal-web/built/assets/session-pKYeWwF4.js
import{_ as e,y as t}from"./messages-DhXGgnRT.js";var n=t(e(),1),r=(0,n.createContext)(null);function i(){let e=(0,n.useContext)(r);if(!e)throw Error(`this page is behind the sign-in`);return e}function a(){let{actions:e}=i();return t=>e.includes(t)}export{a as n,i as r,r as t};
========
import{_ as e,y as t}from"./messages-MGzktD2f.js";var n=t(e(),1),r=(0,n.createContext)(null);function i(){let e=(0,n.useContext)(r);if(!e)throw Error(`this page is behind the sign-in`);return e}function a(){let{actions:e}=i();return t=>e.includes(t)}export{a as n,i as r,r as t};
>>>>>>>> 86cea802 (router: the portal's test chat is a playground with every parameter, tools, images, comparison and Markdown, and its requests are requests of the API):router/portal-web/built/assets/session-Bepp2uUD.js
