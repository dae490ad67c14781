import { ApiError } from "@weiche/shared/errors.ts";
import type { RequestOutcome } from "@weiche/shared/usage-record.ts";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { Ended } from "./exchange.ts";

/**
 * How a request that did not finish is recorded. Ended by its client or by a published limit: it costs what was generated.
 * So does an answer that broke off because of what the model wrote, as far as its client has received it: the client can
 * provoke that. Broken by us: nothing. Undefined: no record, because the client gets a status instead of an answer.
 */
export function unfinishedOutcome(cause: unknown, isAnswering: boolean): RequestOutcome | undefined {
  if (cause instanceof Ended && cause.by === "client") return "client-ended";
  if (cause instanceof Ended && cause.by === "limit") return "limit-ended";
  if (!isAnswering) return undefined;
  return dependsOnAnswer(cause) ? "limit-ended" : "broken";
}

/** An error of the request after its answer has begun: the engine reported only then that the prompt is too long. */
function dependsOnAnswer(cause: unknown): boolean {
  if (cause instanceof ApiError) return cause.status < 500;
  return cause instanceof EngineFault && !cause.isOurs;
}
