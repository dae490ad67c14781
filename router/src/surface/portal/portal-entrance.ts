/** Admits requests to the portal's API by credential, origin and role. */
import type { IncomingMessage } from "node:http";
import { accountBlocked, Refused } from "../../rights/refused.ts";
import type { Sessions } from "../../sign-in/sessions.ts";
import type { Principal, Route } from "../contract/route.ts";
import type { Asker, Entrance } from "../server/add-routes.ts";
import { requireOwnChange } from "../server/own-pages.ts";
import { cookieName, credentialOf, sessionCookie } from "../server/session-cookie.ts";
import { answerToBrowser, type WebEvents } from "../server/web-answers.ts";

export interface PortalEntrance {
  readonly sessions: Pick<Sessions, "find">;
  readonly addressOf: (request: IncomingMessage) => string;
  /** The configured origin of the portal's pages, the only one that may change something. Absent: the request's host. */
  readonly ownOrigin: string | undefined;
  readonly isTls: boolean;
  readonly events: WebEvents;
}

export function portalEntrance(deps: PortalEntrance): Entrance {
  return {
    serve: (route) => (isForPeople(route) ? route : undefined),
    admit: (route, { raw }) => admit(route, raw, deps),
    answerTo: (error, requestId) => answerToBrowser(error, requestId, deps.events),
    cookie: sessionCookie,
  };
}

export function isForPeople({ may, only }: Route): boolean {
  return only === undefined && may.some((principal) => principal !== "operator");
}

async function admit(route: Route, request: IncomingMessage, deps: PortalEntrance): Promise<Asker> {
  const { headers } = request;
  const token = credentialOf(headers, cookieName);
  if (route.method !== "GET") requireOwnChange(headers, deps.ownOrigin, deps.isTls);
  const session = token === undefined ? undefined : await deps.sessions.find(token);
  const may: readonly Principal[] = route.may;
  if (!may.includes("nobody")) {
    if (!session) throw new Refused("login_required", "sign in first");
    if (session.accountBlocked) throw accountBlocked();
    if (!may.includes(session.user.role)) throw new Refused("forbidden", "your role does not allow this");
  }
  const address = deps.addressOf(request);
  return { session, origin: { actor: session?.user.id ?? "nobody", source: address }, address };
}
