/** The portal's listener: its JSON API below `/api`, its pages, and the OpenAPI documents of both APIs. */
import { formatListen } from "@weiche/shared/http/listen.ts";
import { openApiDocument } from "../../api/openapi.ts";
import type { Sessions } from "../../sign-in/sessions.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type Handlers } from "../server/add-routes.ts";
import { addPages, builtPortal } from "../server/built-pages.ts";
import { openWebServer, type WebServerDeps } from "../server/web-server.ts";
import { pagePaths } from "./page-paths.ts";
import { portalEntrance } from "./portal-entrance.ts";
import { portalOpenApi } from "./portal-openapi.ts";

export interface PortalDeps extends WebServerDeps {
  /** The configured URL of the portal. Absent: the address of the listener. */
  readonly publicUrl?: string;
  /** Base URL of the public API. */
  readonly apiUrl: string;
  readonly sessions: Pick<Sessions, "find">;
}

export async function openPortal(deps: PortalDeps) {
  const { tls, publicUrl, apiUrl, sessions, events } = deps;
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await openWebServer("portal", deps));
  const { app, address, addressOf } = server;
  /** Base URL of links. */
  const url = (publicUrl ?? `http${tls ? "s" : ""}://${formatListen(address)}`).replace(/\/$/, "");
  addPages(app, builtPortal, pagePaths);
  for (const [path, document] of [
    ["/openapi.json", JSON.stringify(openApiDocument(apiUrl))],
    ["/api/openapi.json", JSON.stringify(portalOpenApi(contract, url))],
  ] as const)
    app.get(path, (_request, reply) => reply.type("application/json").send(document));
  const entrance = portalEntrance({
    ...{ sessions, addressOf, events },
    ownOrigin: publicUrl && new URL(publicUrl).origin,
    isTls: tls !== undefined,
  });
  const closing = opened.move();
  return {
    address,
    url,
    /** Call once. Earlier requests wait for it. */
    serve: (handlers: Handlers<Contract>): Promise<void> =>
      server.serve((api) => addRoutes(api, contract, handlers, entrance)),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
