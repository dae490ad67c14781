/** Authenticates a request by its headers alone: no body is read for a client that may not ask. */
import type { IncomingMessage } from "node:http";
import { ApiError } from "@weiche/shared/errors.ts";
import type { Caller, KeyCache, KeyRefusal } from "../callers/caller.ts";
import type { RefusalReason } from "../usage/refusal-codes.ts";
import type { Exchange } from "./exchange.ts";

/** A known key is told why it is refused; a missing key and a wrong one get the same answer. */
const keyMessages: Record<(KeyRefusal & { refused: "invalid_api_key" })["why"], string> = {
  unknown: "A valid API key is needed: Authorization: Bearer <key>.",
  revoked: "This API key was revoked.",
  expired: "This API key has expired.",
  "blocked-by-limit": "This API key is blocked: its credit limit, or that of its user, is reached.",
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
  /** Not thrown here: `GET /v1/models` is answered without a quota. */
  readonly quotaExhausted: boolean;
}

/** Throws 400 for two different credentials, 401 for a key that is not accepted, 403 without a package. */
export async function authenticate(exchange: Exchange, keys: KeyCache): Promise<Authenticated> {
  const key = bearerKey(exchange.request);
  if (key === undefined) return accept(exchange, { refused: "invalid_api_key", why: "unknown" });
  // The time of acceptance, which also decides on the billing period: a package that begins later does not count.
  return accept(exchange, await keys.find(key, exchange.acceptedAtMs));
}

/** Records on the exchange whose key it is, also for a refusal. Throws `ApiError` for every reason but a used-up quota. */
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

/** Node keeps the first of several Authorization headers, a proxy joins them. Throws 400 if they differ. */
function bearerKey({ headers, rawHeaders }: IncomingMessage): string | undefined {
  if (headers.authorization === undefined) return undefined;
  const credentials = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.toLowerCase() === "authorization")
      for (const credential of rawHeaders[at + 1]!.split(",")) credentials.add(credential.trim());
  if (credentials.size > 1) throw new ApiError("invalid_request", "The request carries two different credentials.");
  return /^bearer +([^\s]+)$/i.exec([...credentials][0]!)?.[1];
}
