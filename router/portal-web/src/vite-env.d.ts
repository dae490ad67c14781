/// <reference types="vite/client" />

/** The text of deploy/API.md. */
declare module "virtual:api-page" {
  const text: string;
  export default text;
}
