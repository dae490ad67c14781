/** Decides which ended requests are listed as requests without an answer. Pure. */
import type { RefusalCode } from "../usage/refusal-codes.ts";
import type { UnansweredRequest } from "../usage/requests/unanswered-requests.ts";
import type { FinishedRequest } from "./exchange.ts";

/** Returns undefined for a request with an answer, and for one without a known key. */
export function unansweredOf(facts: FinishedRequest): UnansweredRequest | undefined {
  const { requestId, accountId, userId, keyId, model, status, durationMs, outcome, refusal, firstByteMs } = facts;
  if (accountId === undefined || userId === undefined || keyId === undefined) return undefined;
  const isRefused = outcome === "refused";
  if (!isRefused && (outcome !== "client-gone" || firstByteMs !== undefined)) return undefined;
  // A refusal of a known key has one of these codes.
  const code = isRefused ? ((refusal ?? "internal") as RefusalCode) : undefined;
  return { ...{ requestId, accountId, userId, keyId, model, status, durationMs }, code };
}
