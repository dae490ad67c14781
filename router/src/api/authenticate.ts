/** Authenticates a request by its headers, so that no body is read for a client without access. */
import type { IncomingMessage } from "node:http";
import { ApiError } from "@weiche/shared/errors.ts";
import type { Caller, KeyCache, KeyRefusal } from "../callers/caller.ts";
import type { RefusalReason } from "../usage/refusal-codes.ts";
import type { Exchange } from "./exchange.ts";

/** Messages of refused keys. A missing and a wrong key get the same message. */
const keyMessages: Record<(KeyRefusal & { refused: "invalid_api_key" })["why"], string> = {
  unknown: "A valid API key is needed: Authorization: Bearer <key>.",
  revoked: "This API key was revoked.",
  expired: "This API key has expired.",
  "blocked-by-limit": "This API key is blocked, because the credit limit of the key or its user is reached.",
  "user-blocked": "The user of this API key is blocked.",
  "account-blocked": "The account of this API key is blocked. The operator of this service can change that.",
};

const reasons: Partial<Record<keyof typeof keyMessages, RefusalReason>> = {
  revoked: "key_revoked",
  expired: "key_expired",
  "blocked-by-limit": "key_blocked_by_limit",
  "user-blocked": "user_blocked",
  "account-blocked": "account_blocked",
};

export interface Authenticated {
  readonly caller: Caller;
  /** True if the quota is exhausted. It is not thrown here, because `GET /v1/models` needs no quota. */
  readonly quotaExhausted: boolean;
}

/** Throws 400 for two different credentials, 401 for a key that is not accepted, and 403 without a package. */
export async function authenticate(exchange: Exchange, keys: KeyCache): Promise<Authenticated> {
  const key = bearerKey(exchange.request);
  if (key === undefined) return accept(exchange, { refused: "invalid_api_key", why: "unknown" });
  // Uses the time of acceptance, which also determines the billing period: a package that begins later does not count.
  return accept(exchange, await keys.find(key, exchange.acceptedAtMs));
}

/** Stores the key's identity in the exchange. Throws an `ApiError` for all refusals except an exhausted quota. */
export function accept(exchange: Exchange, found: Caller | KeyRefusal): Authenticated {
  if (!("refused" in found)) {
    exchange.identity = found;
    return { caller: found, quotaExhausted: false };
  }
  switch (found.refused) {
    case "invalid_api_key":
      exchange.identity = found.of;
      throw new ApiError("invalid_api_key", keyMessages[found.why], { reason: reasons[found.why] });
    case "no_package":
      exchange.identity = found.of;
      throw new ApiError("no_package", "This account has no active package.");
    case "insufficient_quota":
      exchange.identity = found.caller;
      return { caller: found.caller, quotaExhausted: true };
  }
}

export function quotaError(): ApiError {
  return new ApiError("insufficient_quota", "The credits of this billing period are used up.");
}

/** Reads the key. Node.js keeps the first of several Authorization headers, a proxy joins them. Throws 400 if they differ. */
function bearerKey({ headers, rawHeaders }: IncomingMessage): string | undefined {
  if (headers.authorization === undefined) return undefined;
  const credentials = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.toLowerCase() === "authorization")
      for (const credential of rawHeaders[at + 1]!.split(",")) credentials.add(credential.trim());
  if (credentials.size > 1) throw new ApiError("invalid_request", "The request carries two different credentials.");
  return /^bearer +([^\s]+)$/i.exec([...credentials][0]!)?.[1];
}
