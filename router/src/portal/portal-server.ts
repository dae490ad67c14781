/** The portal's listener: one page that tells where the API is and how accounts are managed, and the API's OpenAPI document. */
import { createServer } from "node:http";
import type { ListenAddress } from "@weiche/shared/listen.ts";
import { openApiDocument } from "../api/openapi.ts";
import { closeServer, listenOn } from "@weiche/shared/ops-server.ts";

export interface PortalServer extends AsyncDisposable {
  readonly address: ListenAddress;
}

const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** `apiUrl` is what both name; it comes from the configuration. */
export async function openPortal(listen: ListenAddress, apiUrl: string): Promise<PortalServer> {
  const front = frontPage(apiUrl);
  const openApi = JSON.stringify(openApiDocument(apiUrl), null, 2);
  const server = createServer(({ method, url }, response) => {
    if (method !== "GET") response.writeHead(404, headers).end(notFound);
    else if (url === "/") response.writeHead(200, headers).end(front);
    else if (url === "/openapi.json")
      response.writeHead(200, { ...headers, "content-type": "application/json" }).end(openApi);
    else response.writeHead(404, headers).end(notFound);
  });
  const port = await listenOn(server, listen, "portal");
  return {
    address: { host: listen.host, port },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

const notFound = "<!doctype html><title>Not found</title><h1>Not found</h1>";

function frontPage(apiUrl: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Weiche</title>
<style>:root { color-scheme: light dark } body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem }</style>
<h1>Weiche</h1>
<p>The API answers at <code>${escapeHtml(apiUrl)}</code>; every request carries <code>Authorization: Bearer</code> and a key. <a href="/openapi.json">Its description for tools</a> (OpenAPI 3.1).</p>
<p>Accounts, keys and usage are managed with the command <code>weiche</code> on the router's host: <code>npx weiche --help</code>.</p>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
