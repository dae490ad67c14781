/** Random tokens of sessions and one-time links. They have 256 bits, and only their SHA-256 is stored. */
import { hash, randomBytes } from "node:crypto";

export function makeToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Returns the SHA-256 of a token in hex. The database stores it in place of the token. */
export function hashToken(token: string): string {
  return hash("sha256", token, "hex");
}

/** Puts the token into the URL's fragment. Browsers do not send it, so opening a link neither consumes nor logs it. */
export function linkTo(portalUrl: string, page: "invitation" | "reset" | "confirm", token: string): string {
  return `${portalUrl.replace(/\/$/, "")}/${page}#${token}`;
}
