/** Random tokens of sessions and one-time links: 256 bits, of which only the SHA-256 is stored. */
import { hash, randomBytes } from "node:crypto";

export function makeToken(): string {
  return randomBytes(32).toString("base64url");
}

/** What is stored of a token, and what it is found by. */
export function hashToken(token: string): string {
  return hash("sha256", token, "hex");
}

/** In the fragment, which browsers send to no server: opening a link uses nothing up and leaves nothing in logs. */
export function linkTo(portalUrl: string, page: "invitation" | "reset", token: string): string {
  return `${portalUrl.replace(/\/$/, "")}/${page}#${token}`;
}
