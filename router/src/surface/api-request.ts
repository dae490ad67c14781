/** What a request to the portal's API shows of itself: its credential, where it was made, what its query says. */
import type { IncomingHttpHeaders } from "node:http";
import type { TObject } from "typebox";
import { readInstantText } from "../db/calendar-text.ts";
import { PortalError } from "./api-error.ts";

export const cookieName = "__Host-weiche";

/** The session's token, undefined without one. Two different credentials: nobody says which one counts. */
export function credentialOf(headers: IncomingHttpHeaders): string | undefined {
  const tokens = (headers.cookie ?? "").split(";").flatMap((pair) => {
    const [name, ...value] = pair.split("=");
    return name!.trim() === cookieName ? [value.join("=").trim()] : [];
  });
  const credentials = new Set(tokens);
  if (headers.authorization !== undefined) credentials.add(`authorization ${headers.authorization}`);
  if (credentials.size > 1) throw new PortalError("invalid", "The request carries two different credentials.");
  return tokens[0];
}

export function sessionCookie(token: string, maxAgeSeconds: number): string {
  return `${cookieName}=${token}; Path=/; Max-Age=${Math.floor(maxAgeSeconds)}; HttpOnly; Secure; SameSite=Lax`;
}

/**
 * Refuses a change that another site asks for. Browsers say where a page came from in one of two headers; whoever sends
 * neither is no browser of ours, and what both say must agree.
 */
export function requireOwnOrigin(headers: IncomingHttpHeaders, ownOrigin: string | undefined, isTls: boolean): void {
  const { origin, host = "" } = headers;
  const site = headers["sec-fetch-site"];
  const own = ownOrigin ?? `http${isTls ? "s" : ""}://${host}`;
  const isOwn = origin === undefined ? site === "same-origin" : origin.toLowerCase() === own.toLowerCase();
  if (!isOwn || (site !== undefined && site !== "same-origin"))
    throw new PortalError("wrong_origin", "Changes are made from the portal's own pages only.");
}

/** Media type alone; without a body there is none. */
export function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"]?.split(";", 1)[0]!.trim().toLowerCase();
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (type !== "application/json" || encoding !== "identity")
    throw new PortalError("unsupported_media_type", "Changes are sent with Content-Type: application/json.");
}

/**
 * A query is text: what its schema calls a number or a boolean is read as one where it is written like one. No text of
 * ours has a NUL, and the database could not hold one.
 */
export function readQuery(schema: TObject | undefined, query: Readonly<Record<string, unknown>>): object {
  const kinds = (schema?.properties ?? {}) as Readonly<Record<string, { readonly type?: string }>>;
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const type = Object.hasOwn(kinds, name) ? kinds[name]!.type : undefined;
      if (typeof value === "string" && value.includes("\0")) throw malformed(name.slice(0, 40));
      if (type === "integer" && typeof value === "string" && /^-?(0|[1-9]\d{0,14})$/.test(value))
        return [name, Number(value)];
      if (type === "boolean" && (value === "true" || value === "false")) return [name, value === "true"];
      return [name, value];
    }),
  );
}

/** Milliseconds of a well-formed instant that the calendar and the database have, too. */
export function readInstant(text: string, param: string): number {
  const ms = readInstantText(text);
  if (ms === undefined) throw malformed(param);
  return ms;
}

function malformed(param: string): PortalError {
  return new PortalError("invalid", `Not accepted: ${param}.`, { details: [{ param, code: "malformed" }] });
}
