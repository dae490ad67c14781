/** Admits requests to the portal's API by credential, origin and role. */
import { accountBlocked, RequestError } from "../../rights/request-error.ts";
import type { Sessions } from "../../sign-in/sessions.ts";
import type { Principal, Route } from "../contract/route.ts";
import type { Entrance } from "../server/add-routes.ts";
import { browserEntrance, type BrowserListener } from "../server/browser-entrance.ts";
import { cookieName, sessionCookie } from "../server/session-cookie.ts";

export function portalEntrance(listener: BrowserListener, sessions: Pick<Sessions, "find">): Entrance {
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
