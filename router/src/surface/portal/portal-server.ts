/** The portal's listener: its JSON API below `/api`, its pages, and the OpenAPI document of the public API. */
import { openApiDocument } from "../../api/openapi.ts";
import type { Sessions } from "../../sign-in/sessions.ts";
import { contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type Entrance, type Handlers } from "../server/add-routes.ts";
import { builtPortal } from "../server/built-pages.ts";
import { openWebServer, type WebServerDeps } from "../server/web-server.ts";
import { pagePaths } from "./page-paths.ts";
import { accountBlocked, RequestError } from "../../rights/request-error.ts";
import type { Principal, Route } from "../contract/route.ts";
import { browserEntrance, type BrowserListener } from "../server/browser-entrance.ts";
import { cookieName, sessionCookie } from "../server/session-cookie.ts";

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

/** Admits requests to the portal's API by credential, origin and role. */
function portalEntrance(listener: BrowserListener, sessions: Pick<Sessions, "find">): Entrance {
  return browserEntrance(listener, {
    serve: (route) => (isForPeople(route) ? route : undefined),
    cookieName,
    cookie: sessionCookie,
    async admit(route, { credential, address }) {
      const session = credential === undefined ? undefined : await sessions.find(credential);
      const may: readonly Principal[] = route.may;
      if (!may.includes("nobody")) {
        if (!session) throw new RequestError("login_required", "sign in first");
        if (session.accountBlocked) throw accountBlocked();
        if (!may.includes(session.user.role)) throw new RequestError("forbidden", "your role does not allow this");
      }
      return { session, origin: { actor: session?.user.id ?? "nobody", source: address }, address };
    },
  });
}

function isForPeople({ may, only }: Route): boolean {
  return only === undefined && may.some((principal) => principal !== "operator");
}
