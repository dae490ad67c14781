/** The error for the router and the client of a failed request. */
import { ApiError } from "@weiche/shared/errors.ts";
import type { NodeFault } from "@weiche/shared/node-protocol.ts";
import type { ModelId, RequestId, SlotName } from "@weiche/shared/ids.ts";
import { EngineFault, nodeFaultOf, type EngineFaultReason } from "../engines/dialects/engine-fault.ts";
import { Ended } from "./exchange.ts";
import type { RequestRun } from "./request-run.ts";

export interface FaultEvents {
  /** An engine failed while it answered this request. `detail` quotes nothing of the request. */
  engineFault(requestId: RequestId, model: ModelId, slot: SlotName, reason: EngineFaultReason, detail: string): void;
  /** An unexpected error was thrown, which is a bug. */
  requestBug(error: unknown): void;
}

/** Returns the error for the client. Reports an engine fault or a bug to `events`. */
export function errorOf({ head, admission, hasOutput }: RequestRun, cause: unknown, events: FaultEvents): ApiError {
  if (cause instanceof ApiError) return cause;
  if (cause instanceof Ended) {
    return cause.by === "limit"
      ? new ApiError("timeout", "The request took longer than a request may take.")
      : new ApiError("maintenance", "The node is being stopped.", { retryAfterSeconds: 1 });
  }
  if (cause instanceof EngineFault && admission) {
    events.engineFault(head.requestId, head.model, admission.slot, cause.reason, cause.message);
    if (cause.death)
      return new ApiError("engine_died", "The model's engine died while it worked.", { reason: cause.death });
    if (cause.reason === "refused")
      // The engine's slot restarts it, and holds the request if the router sends it again.
      return new ApiError("model_unavailable", "The model's engine does not answer.", {
        retryAfterSeconds: 1,
        reason: "engine-away" satisfies NodeFault,
      });
    const seesExit = admission.engine.launcher.kind !== "external";
    const reason = nodeFaultOf(cause, { seesExit, hadOutput: hasOutput });
    return new ApiError("internal", "The model's engine failed.", { reason });
  }
  events.requestBug(cause);
  return new ApiError("internal", "Internal error.", { reason: "node-failed" satisfies NodeFault });
}
