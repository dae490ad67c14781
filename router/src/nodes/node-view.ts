/**
 * The state of the nodes that placement decides on. A slot has the fields of the protocol, as its agent reported them, and
 * those that only this router knows. A missing measurement is absent, never 0.
 */
import {
  SlotState,
  type Hello,
  type LoadReport,
  type PastSwitch as WirePastSwitch,
  type SlotLoad,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { ModelId, NodeId, SlotName } from "@weiche/shared/ids.ts";
import type { Trouble } from "./outcomes/standing.ts";

export { SlotState };

/** The states that this version knows. */
export type KnownSlotState = Exclude<SlotState, typeof SlotState.UNSPECIFIED | typeof SlotState.UNRECOGNIZED>;

/** The checked first message of an agent. */
export interface NodeHello extends Hello {
  readonly node: NodeId;
  readonly slots: readonly { readonly name: SlotName; readonly models: readonly ModelId[] }[];
}

/** A switch that is over, or a start that failed. */
export interface PastSwitch extends Omit<WirePastSwitch, "endedAgoMs"> {
  /** Monotonic ms of this router. */
  readonly endedAtMs: number;
}

export interface NodeReport extends Omit<LoadReport, "sequence"> {
  readonly slots: readonly SlotReport[];
}

export interface SlotReport extends SlotLoad {
  readonly name: SlotName;
  readonly state: KnownSlotState;
  readonly activeModel?: ModelId;
  readonly nextModel?: ModelId;
}

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

export interface SlotView extends SlotReport {
  readonly models: readonly ModelId[];
  /** Answers that this router has asked the slot for, until its engine is done with them. */
  readonly inFlight: number;
  /** Answers of this router that the engine is done with, and clients still read. */
  readonly unread: number;
  /** Waiters for any model. */
  readonly waiting: number;
  /** Monotonic ms of this router since when nothing has run or waited. Absent: something does, or it is not known. */
  readonly idleSinceMs?: number;
  /** The models whose requests fail or are slow in this slot, by this router's own attempts. */
  readonly troubles?: ReadonlyMap<ModelId, Trouble>;
}

export function waitingFor({ waiters }: Pick<SlotLoad, "waiters">, model: ModelId): number {
  return waiters.find((waiter) => waiter.model === model)?.waiting ?? 0;
}

/** A slot's state as a word, for people. */
export type SlotStateWord = (typeof stateWords)[KnownSlotState];

export const stateWords = {
  [SlotState.EMPTY]: "empty",
  [SlotState.STARTING]: "starting",
  [SlotState.ACTIVE]: "active",
  [SlotState.DRAINING_OPEN]: "draining-open",
  [SlotState.DRAINING_CLOSED]: "draining-closed",
  [SlotState.STOPPING]: "stopping",
  [SlotState.FAILED]: "failed",
} as const;
