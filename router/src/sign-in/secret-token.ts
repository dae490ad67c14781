/** Random tokens of sessions and one-time links: 256 bits, of which only the SHA-256 is stored. */
import { hash, randomBytes } from "node:crypto";

export function makeToken(): string {
  return randomBytes(32).toString("base64url");
}

/** SHA-256 in hex: the form in which a token is stored and looked up. */
export function hashToken(token: string): string {
  return hash("sha256", token, "hex");
}

/** The token is in the URL's fragment, which browsers do not send: opening a link neither consumes it nor logs it. */
export function linkTo(portalUrl: string, page: "invitation" | "reset", token: string): string {
  return `${portalUrl.replace(/\/$/, "")}/${page}#${token}`;
}
