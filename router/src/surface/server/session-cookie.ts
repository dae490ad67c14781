/** The cookies that carry a session's token. Scripts and other sites cannot read them. */
import type { IncomingHttpHeaders } from "node:http";
import { RequestError } from "../../rights/request-error.ts";

/** Writes one listener's cookie with a token. */
export type WriteCookie = (token: string, maxAgeSeconds: number) => string;

/** Name of the portal's cookie. */
export const cookieName = "__Host-weiche";

export const sessionCookie: WriteCookie = (token, maxAgeSeconds) =>
  `${cookieName}=${token}; Path=/; Max-Age=${Math.floor(maxAgeSeconds)}; HttpOnly; Secure; SameSite=Lax`;

/** Name of the console's cookie. It differs from the portal's, because browsers send cookies to all ports of a host. */
export function consoleCookieName(isTls: boolean): string {
  return isTls ? "__Host-weiche-console" : "weiche-console";
}

/** Without TLS, the console runs on loopback only, where some browsers refuse a `Secure` cookie. */
export function consoleCookie(isTls: boolean): WriteCookie {
  return (token, maxAgeSeconds) =>
    `${consoleCookieName(isTls)}=${token}; Path=/; Max-Age=${Math.floor(maxAgeSeconds)}; HttpOnly; ` +
    `${isTls ? "Secure; " : ""}SameSite=Strict`;
}

/** Returns the session's token, or undefined without one. Throws `RequestError` for two different credentials. */
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
