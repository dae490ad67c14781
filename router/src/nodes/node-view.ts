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
type KnownSlotState = Exclude<SlotState, typeof SlotState.UNSPECIFIED | typeof SlotState.UNRECOGNIZED>;

/** The checked first message of an agent. */
export interface NodeHello extends Omit<Hello, "slots"> {
  readonly node: NodeId;
  readonly slots: readonly HostedSlot[];
}

/** A slot as its agent describes it. */
export interface HostedSlot {
  readonly name: SlotName;
  readonly models: readonly ModelId[];
  /** Engines that serve several models at the same time. The first of these names the engine in reports. Absent: none does. */
  readonly engines?: readonly { readonly models: readonly ModelId[] }[];
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
  /** Engines that serve several models at the same time. Absent: none does. */
  readonly engines?: HostedSlot["engines"];
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

/** Waiters for the engine of the model, whichever of its models they asked for. */
export function waitingFor(slot: Pick<SlotView, "waiters" | "engines">, model: ModelId): number {
  const models: readonly string[] = servedWith(slot, model);
  return slot.waiters.reduce((sum, one) => (models.includes(one.model) ? sum + one.waiting : sum), 0);
}

/** The models that the slot serves at the same time as this one, itself among them. */
export function servedWith({ engines }: Pick<SlotView, "engines">, model: ModelId): readonly ModelId[] {
  return engines?.find(({ models }) => models.includes(model))?.models ?? [model];
}

/** Returns whether one engine of the slot serves both models. `named` is, for example, the active model. */
export function isServedBy(slot: Pick<SlotView, "engines">, named: ModelId | undefined, model: ModelId): boolean {
  return named === model || (named !== undefined && servedWith(slot, model).includes(named));
}

export const stateWords = {
  [SlotState.EMPTY]: "empty",
  [SlotState.STARTING]: "starting",
  [SlotState.ACTIVE]: "active",
  [SlotState.DRAINING_OPEN]: "draining-open",
  [SlotState.DRAINING_CLOSED]: "draining-closed",
  [SlotState.STOPPING]: "stopping",
  [SlotState.FAILED]: "failed",
} as const;
