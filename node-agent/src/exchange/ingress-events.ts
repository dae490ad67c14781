/** Events of request handling. */
import type { ApiErrorKind } from "@weiche/shared/errors.ts";
import type { ModelId, RequestId, SlotName } from "@weiche/shared/ids.ts";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import type { ChunkGaps } from "../answer/chunk-gaps.ts";
import type { FaultEvents } from "./request-error.ts";

export interface IngressEvents extends FaultEvents {
  requestEnded(summary: RequestSummary): void;
  /**
   * The engine refused something that the service promises. `detail` gives the remedy and quotes nothing of the
   * request.
   */
  engineShortfall(requestId: RequestId, model: ModelId, slot: SlotName, detail: string): void;
  /** The engine ended an answer with a finish reason that the convention does not have. */
  unknownFinish(requestId: RequestId, model: ModelId, reason: string): void;
}

export interface RequestSummary {
  readonly requestId: RequestId;
  readonly model: ModelId;
  readonly path: NodePath;
  /** Undefined if the request was never admitted. */
  readonly slot: SlotName | undefined;
  readonly waitedMs: number;
  /** Undefined if the request was refused, or its router was lost before the first byte. */
  readonly record: UsageRecord | undefined;
  readonly gaps: ChunkGaps;
  /** The error that the client got instead of an answer, or at its end. */
  readonly error: ApiErrorKind | undefined;
}
