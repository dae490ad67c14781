/** The live picture of the nodes that placement decides on. Plain data; a missing measurement is absent, never 0. */
import type { ModelId, NodeId, SlotName } from "@weiche/shared/ids.ts";

export type SlotKind = "empty" | "starting" | "active" | "draining-open" | "draining-closed" | "stopping" | "failed";

export interface NodeView {
  readonly node: NodeId;
  /** A report within the last 3 s and an open data session. */
  readonly reachable: boolean;
  /** Monotonic ms of the last report. */
  readonly reportedAtMs: number;
  readonly admitting: boolean;
  readonly maintenance: boolean;
  readonly slots: readonly SlotView[];
}

export interface SlotView {
  readonly name: SlotName;
  readonly models: readonly ModelId[];
  readonly kind: SlotKind;
  readonly active?: ModelId;
  readonly next?: ModelId;
  /** As reported. Here and below, a request for several answers counts as often as it asks for them. */
  readonly running: number;
  /** Of these, this router's, as reported. */
  readonly runningOfRouter: number;
  /** This router's own requests in flight to the slot, counted at dispatch. */
  readonly inFlight: number;
  readonly waiting: number;
  readonly waitingByModel: ReadonlyMap<ModelId, number>;
  /** Since when (monotonic ms of this router) nothing has run or waited. Absent: something does, or not known. */
  readonly idleSinceMs?: number;
  readonly oldestRunningMs?: number;
  readonly closesInMs?: number;
  readonly stateAgeMs: number;
  /** Places of the active engine: most answers at once. */
  readonly maxConcurrent?: number;
  readonly retryInMs?: number;
}
