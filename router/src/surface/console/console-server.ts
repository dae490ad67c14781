/** The console's listener: its pages, and the operator's routes that they need. */
import type { IncomingMessage } from "node:http";
import type { Database } from "../../db/database.ts";
import { consoleRoutes, contract, type Contract } from "../contract/contract.ts";
import { addRoutes, type Entrance, type Handlers } from "../server/add-routes.ts";
import { builtConsole } from "../server/built-pages.ts";
import { asOperated, operated } from "../server/operated.ts";
import { openWebServer, type WebServerDeps } from "../server/web-server.ts";
import type { ConsoleSession, ConsoleSessions } from "./console-sessions.ts";
import { operator } from "../../rights/accounts-context.ts";
import { RequestError } from "../../rights/request-error.ts";
import type { Principal, Route } from "../contract/route.ts";
import { browserEntrance, type BrowserListener } from "../server/browser-entrance.ts";
import { consoleCookie, consoleCookieName } from "../server/session-cookie.ts";

/** Paths of the console's pages. The listener serves the same document at each, and the application shows the page. */
const consolePaths = ["/", "/slots", "/accounts", "/requests", "/pipeline", "/capacity", "/sign-in"] as const;

const served = new Set<Route>(consoleRoutes.map((name) => contract[name]));

interface ConsoleDeps extends WebServerDeps {
  readonly sessions: ConsoleSessions;
  readonly database: Database;
}

export async function openConsole(deps: ConsoleDeps) {
  const server = await openWebServer(deps, { directory: builtConsole, paths: consolePaths });
  const entrance = consoleEntrance(server, deps.sessions);
  return {
    ...server,
    /** Adds the routes. Call it once. Earlier requests wait for it. */
    serve: (handlers: Handlers<Contract>): Promise<void> =>
      server.serve((api) => addRoutes(api, contract, operated(contract, handlers, deps.database), entrance)),
  };
}

/** Admits operators to the console by their session cookie. */
function consoleEntrance(listener: BrowserListener, sessions: ConsoleSessions): Entrance {
  return browserEntrance(listener, {
    serve: (route) => (served.has(route) ? (asOperated(route) ?? route) : undefined),
    cookieName: consoleCookieName(listener.isTls),
    cookie: consoleCookie(listener.isTls),
    admit(route, { credential, address, request }) {
      const session = credential === undefined ? undefined : sessions.find(credential);
      const may: readonly Principal[] = route.may;
      if (!may.includes("nobody") && !session)
        throw new RequestError("login_required", "open the console with a new link: weiche console");
      if (session && route.stream) cutWith(session, request);
      return { session: undefined, origin: { ...operator, source: `console ${address}` }, address, credential };
    },
  });
}

/** Closes a stream when its session ends. */
function cutWith({ ended }: ConsoleSession, { socket }: IncomingMessage): void {
  const cut = () => socket.destroy();
  ended.addEventListener("abort", cut, { once: true });
  socket.once("close", () => ended.removeEventListener("abort", cut));
}
