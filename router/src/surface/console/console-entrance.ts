/** Admits operators to the console by the cookie of their session. */
import type { IncomingMessage } from "node:http";
import { operator } from "../../rights/accounts-context.ts";
import { Refused } from "../../rights/refused.ts";
import { consoleRoutes, contract } from "../contract/contract.ts";
import type { Principal, Route } from "../contract/route.ts";
import type { Asker, Entrance } from "../server/add-routes.ts";
import { asOperated } from "../server/operated.ts";
import { requireOwnChange } from "../server/own-pages.ts";
import { consoleCookie, consoleCookieName, credentialOf } from "../server/session-cookie.ts";
import { answerToBrowser, type WebEvents } from "../server/web-answers.ts";
import type { ConsoleSessions } from "./console-sessions.ts";

export interface ConsoleEntrance {
  readonly sessions: Pick<ConsoleSessions, "find">;
  readonly addressOf: (request: IncomingMessage) => string;
  /** The configured origin of the console's pages. Absent: the request's host. */
  readonly ownOrigin: string | undefined;
  readonly isTls: boolean;
  readonly events: WebEvents;
}

const served = new Set<Route>(consoleRoutes.map((name) => contract[name]));

export function consoleEntrance(deps: ConsoleEntrance): Entrance {
  return {
    serve: (route) => (served.has(route) ? (asOperated(route) ?? route) : undefined),
    admit: (route, { raw }) => admit(route, raw, deps),
    answerTo: (error, requestId) => answerToBrowser(error, requestId, deps.events),
    cookie: consoleCookie(deps.isTls),
  };
}

function admit(route: Route, request: IncomingMessage, deps: ConsoleEntrance): Asker {
  const { headers } = request;
  const credential = credentialOf(headers, consoleCookieName(deps.isTls));
  if (route.method !== "GET") requireOwnChange(headers, deps.ownOrigin, deps.isTls);
  const session = credential === undefined ? undefined : deps.sessions.find(credential);
  const may: readonly Principal[] = route.may;
  if (!may.includes("nobody") && !session) throw new Refused("login_required", "open the console by a new link");
  // A stream goes on until its page is closed, but not beyond its session.
  if (session && route.stream) {
    const cut = () => request.socket.destroy();
    session.ended.addEventListener("abort", cut, { once: true });
    request.socket.once("close", () => session.ended.removeEventListener("abort", cut));
  }
  const address = deps.addressOf(request);
  return { session: undefined, origin: { ...operator, source: `console ${address}` }, address, credential };
}
