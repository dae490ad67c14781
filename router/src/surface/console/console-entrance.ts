/** Admits operators to the console by their session cookie. */
import type { IncomingMessage } from "node:http";
import { operator } from "../../rights/accounts-context.ts";
import { RequestError } from "../../rights/request-error.ts";
import { consoleRoutes, contract } from "../contract/contract.ts";
import type { Principal, Route } from "../contract/route.ts";
import type { Entrance } from "../server/add-routes.ts";
import { browserEntrance, type BrowserListener } from "../server/browser-entrance.ts";
import { asOperated } from "../server/operated.ts";
import { consoleCookie, consoleCookieName } from "../server/session-cookie.ts";
import type { ConsoleSession, ConsoleSessions } from "./console-sessions.ts";

const served = new Set<Route>(consoleRoutes.map((name) => contract[name]));

export function consoleEntrance(listener: BrowserListener, sessions: Pick<ConsoleSessions, "find">): Entrance {
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
