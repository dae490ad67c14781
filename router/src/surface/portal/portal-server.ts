/** The portal's listener: its JSON API below `/api`, its pages, and the OpenAPI document of the public API. */
import { openApiDocument } from "../../api/openapi.ts";
import type { Sessions } from "../../sign-in/sessions.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type Handlers } from "../server/add-routes.ts";
import { builtPortal } from "../server/built-pages.ts";
import { openWebServer, type WebServerDeps } from "../server/web-server.ts";
import { pagePaths } from "./page-paths.ts";
import { portalEntrance } from "./portal-entrance.ts";

export interface PortalDeps extends WebServerDeps {
  /** Base URL of the public API. */
  readonly apiUrl: string;
  readonly sessions: Pick<Sessions, "find">;
}

export async function openPortal(deps: PortalDeps) {
  const server = await openWebServer(deps, { directory: builtPortal, paths: pagePaths });
  const document = JSON.stringify(openApiDocument(deps.apiUrl));
  server.app.get("/openapi.json", (_request, reply) => reply.type("application/json").send(document));
  const entrance = portalEntrance(server, deps.sessions);
  return {
    ...server,
    /** Adds the routes. Call it once. Earlier requests wait for it. */
    serve: (handlers: Handlers<Contract>): Promise<void> =>
      server.serve((api) => addRoutes(api, contract, handlers, entrance)),
  };
}
