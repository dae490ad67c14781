/** The cookies that carry the token of a session. No script and no other site gets them. */
import type { IncomingHttpHeaders } from "node:http";
import { RequestError } from "../../rights/request-error.ts";

/** Writes the cookie of one listener, with a token and for how long the browser keeps it. */
export type WriteCookie = (token: string, maxAgeSeconds: number) => string;

/** Name of the portal's cookie. */
export const cookieName = "__Host-weiche";

export const sessionCookie: WriteCookie = (token, maxAgeSeconds) =>
  `${cookieName}=${token}; Path=/; Max-Age=${Math.floor(maxAgeSeconds)}; HttpOnly; Secure; SameSite=Lax`;

/** Name of the console's cookie. It differs from the portal's, since browsers send cookies to all ports of a host. */
export function consoleCookieName(isTls: boolean): string {
  return isTls ? "__Host-weiche-console" : "weiche-console";
}

/** Without TLS it is for loopback only, where not every browser takes a cookie that is `Secure`. */
export function consoleCookie(isTls: boolean): WriteCookie {
  return (token, maxAgeSeconds) =>
    `${consoleCookieName(isTls)}=${token}; Path=/; Max-Age=${Math.floor(maxAgeSeconds)}; HttpOnly; ` +
    `${isTls ? "Secure; " : ""}SameSite=Strict`;
}

/** The session's token, undefined without one. Throws `RequestError` for two different credentials. */
export function credentialOf(headers: IncomingHttpHeaders, ofCookie: string): string | undefined {
  const tokens = (headers.cookie ?? "").split(";").flatMap((pair) => {
    const [name, ...value] = pair.split("=");
    return name!.trim() === ofCookie ? [value.join("=").trim()] : [];
  });
  const credentials = new Set(tokens);
  if (headers.authorization !== undefined) credentials.add(`authorization ${headers.authorization}`);
  if (credentials.size > 1) throw new RequestError("invalid", "the request carries two different credentials");
  return tokens[0];
}
