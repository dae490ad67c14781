<<<<<<<< HEAD:router/portal-web/built/assets/session-BLRcMUbU.js
import{g as e,m as t}from"./messages-vltWrATR.js";var n=e(t(),1),r=(0,n.createContext)(null);function i(){let e=(0,n.useContext)(r);if(!e)throw Error(`this page is behind the sign-in`);return e}function a(){let{actions:e}=i();return t=>e.includes(t)}export{a as n,i as r,r as t};
========
import{g as e,m as t}from"./messages-Dfq8LLnV.js";var n=e(t(),1),r=(0,n.createContext)(null);function i(){let e=(0,n.useContext)(r);if(!e)throw Error(`this page is behind the sign-in`);return e}function a(){let{actions:e}=i();return t=>e.includes(t)}export{a as n,i as r,r as t};
>>>>>>>> f8581d78 (docs, router: pages and built portal with single requests):router/portal-web/built/assets/session-Bsck8QDl.js
