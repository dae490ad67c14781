import { ApiError } from "@weiche/shared/errors.ts";
import type { RequestOutcome } from "@weiche/shared/usage-record.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { Ended } from "./exchange.ts";

/**
 * Returns how an unfinished request is recorded. If the client or a published limit ended it, it costs the generated
 * tokens. If the answer broke off because of what the model wrote, it costs the part that the client received, because
 * a client can provoke that. If we broke it, it costs nothing. Returns undefined if the client gets a status instead of
 * an answer, which leaves no record.
 */
export function unfinishedOutcome(cause: unknown, isAnswering: boolean): RequestOutcome | undefined {
  if (cause instanceof Ended && cause.by === "client") return "client-ended";
  if (cause instanceof Ended && cause.by === "limit") return "limit-ended";
  if (!isAnswering) return undefined;
  return dependsOnAnswer(cause) ? "limit-ended" : "broken";
}

/**
 * Returns whether the error is of the request although its answer has begun. Some engines report only then that the
 * prompt is too long.
 */
function dependsOnAnswer(cause: unknown): boolean {
  if (cause instanceof ApiError) return cause.status < 500;
  return cause instanceof EngineFault && !cause.isOurs;
}
