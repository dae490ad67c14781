/** The salt that keeps the prompts of one account apart in an engine's prefix cache. */
import type { CachePrompts } from "../engines/engine.ts";
import type { RequestHead } from "../intake/request-head.ts";

/** Undefined: all accounts share the cache. */
export function cacheSaltOf(
  mode: CachePrompts = "per-account",
  { billing, requestId }: RequestHead,
): string | undefined {
  switch (mode) {
    case "per-account":
      return billing.accountId;
    case "off":
      return requestId;
    case "shared":
      return undefined;
  }
}
