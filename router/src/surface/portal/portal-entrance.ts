/** Admits requests to the portal's API by credential, origin and role, and formats its error answers. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { ApiError, errorBody, errorHeaders } from "@weiche/shared/errors.ts";
import type { RequestId } from "@weiche/shared/ids.ts";
import { isUnavailable } from "../../db/failures.ts";
import { Refused } from "../../rights/refused.ts";
import type { Sessions } from "../../sign-in/sessions.ts";
import type { Principal, Route } from "../contract/route.ts";
import type { Asker, Entrance, ErrorAnswer } from "../server/add-routes.ts";
import { asRefused, refusals } from "../server/refusal.ts";
import { cookieName } from "../server/session-cookie.ts";

export interface PortalEntrance {
  readonly sessions: Pick<Sessions, "find">;
  readonly addressOf: (request: IncomingMessage) => string;
  /** The configured origin of the portal's pages, the only one that may change something. Absent: the request's host. */
  readonly ownOrigin: string | undefined;
  readonly isTls: boolean;
  readonly events: PortalEvents;
}

export interface PortalEvents {
  /** A bug of ours, answered with 500 or a cut connection. */
  requestFailed(requestId: RequestId, error: unknown): void;
  /** One address opened more connections than it may. */
  connectionRefused(): void;
  /** The database does not answer, answered with 503. */
  databaseUnavailable(error: unknown): void;
}

export function portalEntrance(deps: PortalEntrance): Entrance {
  return {
    serve: (route) => (isForPeople(route) ? route : undefined),
    admit: (route, { raw }) => admit(route, raw, deps),
    answerTo: (error, requestId) => answerTo(error, requestId, deps.events),
  };
}

export function isForPeople({ may }: Route): boolean {
  return may.some((principal) => principal !== "operator");
}

async function admit(route: Route, request: IncomingMessage, deps: PortalEntrance): Promise<Asker> {
  const { headers } = request;
  const token = credentialOf(headers);
  if (route.method !== "GET") {
    requireOwnOrigin(headers, deps.ownOrigin, deps.isTls);
    requireJson(headers);
  }
  const session = token === undefined ? undefined : await deps.sessions.find(token);
  const may: readonly Principal[] = route.may;
  if (!may.includes("nobody")) {
    if (!session) throw new Refused("login_required", "sign in first");
    if (!may.includes(session.user.role)) throw new Refused("forbidden", "your role does not allow this");
  }
  const address = deps.addressOf(request);
  return { session, origin: { actor: session?.user.id ?? "nobody", source: address }, address };
}

/** The session's token, undefined without one. Throws `Refused` for two different credentials. */
function credentialOf(headers: IncomingHttpHeaders): string | undefined {
  const tokens = (headers.cookie ?? "").split(";").flatMap((pair) => {
    const [name, ...value] = pair.split("=");
    return name!.trim() === cookieName ? [value.join("=").trim()] : [];
  });
  const credentials = new Set(tokens);
  if (headers.authorization !== undefined) credentials.add(`authorization ${headers.authorization}`);
  if (credentials.size > 1) throw new Refused("invalid", "the request carries two different credentials");
  return tokens[0];
}

/**
 * Refuses changes that pages of other sites ask for. Browsers name the page's origin in one of two headers. A request
 * without both is refused, and both must agree.
 */
function requireOwnOrigin(headers: IncomingHttpHeaders, ownOrigin: string | undefined, isTls: boolean): void {
  const { origin, host = "" } = headers;
  const site = headers["sec-fetch-site"];
  const own = ownOrigin ?? `http${isTls ? "s" : ""}://${host}`;
  const isOwn = origin === undefined ? site === "same-origin" : origin.toLowerCase() === own.toLowerCase();
  if (!isOwn || (site !== undefined && site !== "same-origin"))
    throw new Refused("wrong_origin", "changes are made from the portal's own pages only");
}

/** Throws `Refused` unless the media type is JSON. */
function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"]?.split(";", 1)[0]!.trim().toLowerCase();
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (type !== "application/json" || encoding !== "identity")
    throw new Refused("unsupported_media_type", "changes are sent with Content-Type: application/json");
}

/** The error body of the public API, and each wrong parameter by name. */
function answerTo(error: unknown, requestId: RequestId, events: PortalEvents): ErrorAnswer {
  const refused = asRefused(error);
  if (refused) return answerToRefused(refused);
  if (error instanceof ApiError) return answerToApiError(error);
  if (isUnavailable(error)) {
    events.databaseUnavailable(error);
    const options = { retryAfterSeconds: 2 };
    return answerToApiError(new ApiError("overloaded", "The database does not answer at the moment.", options));
  }
  events.requestFailed(requestId, error);
  return answerToApiError(new ApiError("internal", "Internal error."));
}

function answerToApiError(error: ApiError): ErrorAnswer {
  return { status: error.status, headers: errorHeaders(error), body: errorBody(error) };
}

function answerToRefused({ kind, message: phrase, details, retryAfterSeconds }: Refused): ErrorAnswer {
  const { status, type, code } = refusals[kind];
  const message = `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.`;
  const param = details[0]?.param ?? null;
  return {
    status,
    headers:
      retryAfterSeconds === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(retryAfterSeconds))) },
    body: { error: { message, type, param, code, details: details.length > 0 ? details : undefined } },
  };
}
