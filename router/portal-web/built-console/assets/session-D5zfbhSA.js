<<<<<<<< HEAD:router/portal-web/built-console/assets/session-DzgAJHQt.js
import{h as e,p as t}from"./shim-FwH_fsSh.js";var n=e(t(),1),r=new class{#e=!1;#t=new Set;ended=()=>this.#n(!0);began=()=>this.#n(!1);hasEnded=()=>this.#e;subscribe=e=>(this.#t.add(e),()=>this.#t.delete(e));#n(e){this.#e=e;for(let e of this.#t)e()}};function i(){return(0,n.useSyncExternalStore)(r.subscribe,r.hasEnded)}export{i as n,r as t};
========
import{h as e,p as t}from"./shim-CFBCtf6w.js";var n=e(t(),1),r=new class{#e=!1;#t=new Set;ended=()=>this.#n(!0);began=()=>this.#n(!1);hasEnded=()=>this.#e;subscribe=e=>(this.#t.add(e),()=>this.#t.delete(e));#n(e){this.#e=e;for(let e of this.#t)e()}};function i(){return(0,n.useSyncExternalStore)(r.subscribe,r.hasEnded)}export{i as n,r as t};
>>>>>>>> 86cea802 (router: the portal's test chat is a playground with every parameter, tools, images, comparison and Markdown, and its requests are requests of the API):router/portal-web/built-console/assets/session-D5zfbhSA.js
