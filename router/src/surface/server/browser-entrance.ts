/** Common part of the browsers' entrances: a cookie carries the credential, and changes must come from own pages. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Route } from "../contract/route.ts";
import type { Asker, Entrance } from "./add-routes.ts";
import { credentialOf, type WriteCookie } from "./session-cookie.ts";
import { answerToBrowser, type WebEvents } from "./web-answers.ts";
import { RequestError } from "../../rights/request-error.ts";

/** Facts about a listener, which decide whether a request is admitted. */
export interface BrowserListener {
  /** Returns the client's network address, also behind trusted proxies. */
  readonly addressOf: (request: IncomingMessage) => string;
  /** The configured origin of its pages, the only one that may make changes. If undefined, the request's host counts. */
  readonly ownOrigin: string | undefined;
  readonly isTls: boolean;
  readonly events: WebEvents;
}

interface BrowserEntrance {
  readonly serve: Entrance["serve"];
  readonly cookieName: string;
  readonly cookie: WriteCookie;
  /** Finds the session of the credential. Throws `RequestError` if its holder may not call the route. */
  readonly admit: (
    route: Route,
    caller: { readonly credential: string | undefined; readonly address: string; readonly request: IncomingMessage },
  ) => Asker | Promise<Asker>;
}

export function browserEntrance(
  { addressOf, ownOrigin, isTls, events }: BrowserListener,
  { serve, cookieName, cookie, admit }: BrowserEntrance,
): Entrance {
  return {
    serve,
    cookie,
    admit(route, { raw: request }) {
      const credential = credentialOf(request.headers, cookieName);
      if (route.method !== "GET") requireOwnChange(request.headers, ownOrigin, isTls);
      return admit(route, { credential, address: addressOf(request), request });
    },
    answerTo: (error, requestId) => answerToBrowser(error, requestId, events),
  };
}

/**
 * Throws `RequestError` unless a page of this origin sent the change, as JSON. Browsers send the page's origin in one of two
 * headers. A request without both is refused, and both must agree. If `ownOrigin` is undefined, the request's host counts.
 */
function requireOwnChange(headers: IncomingHttpHeaders, ownOrigin: string | undefined, isTls: boolean): void {
  const { origin, host = "" } = headers;
  const site = headers["sec-fetch-site"];
  const own = ownOrigin ?? `http${isTls ? "s" : ""}://${host}`;
  const isOwn = origin === undefined ? site === "same-origin" : origin.toLowerCase() === own.toLowerCase();
  if (!isOwn || (site !== undefined && site !== "same-origin"))
    throw new RequestError("wrong_origin", "changes are accepted only from the service's own pages");
  requireJson(headers);
}

/** Throws `RequestError` unless the media type is JSON. */
function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"]?.split(";", 1)[0]!.trim().toLowerCase();
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (type !== "application/json" || encoding !== "identity")
    throw new RequestError("unsupported_media_type", "changes must be sent with Content-Type: application/json");
}
