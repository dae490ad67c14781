/// <reference types="vite/client" />

/** The text of docs/api.md. */
declare module "virtual:api-page" {
  const text: string;
  export default text;
}
