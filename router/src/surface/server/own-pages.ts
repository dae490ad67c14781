/** Checks that a change comes from the listener's own pages, not from another site. */
import type { IncomingHttpHeaders } from "node:http";
import { RequestError } from "../../rights/request-error.ts";

/**
 * Throws `RequestError` unless a page of this origin sent the change, as JSON. Browsers send the page's origin in one of two
 * headers. A request without both is refused, and both must agree. If `ownOrigin` is undefined, the request's host counts.
 */
export function requireOwnChange(headers: IncomingHttpHeaders, ownOrigin: string | undefined, isTls: boolean): void {
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
