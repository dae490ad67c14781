/**
 * The state of the nodes, on which placement decides. A slot has the fields of its agent's report and fields that only
 * this router knows. An unknown measurement is undefined, never 0.
 */
import {
  SlotState,
  type EngineFailure as WireFailure,
  type Hello,
  type LoadReport,
  type PastSwitch as WirePastSwitch,
  type SlotLoad,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { EngineFailureKind, KnownSlotState } from "@weiche/proto/words.ts";
import type { ModelId, NodeId, SlotName } from "@weiche/shared/ids.ts";
import type { Trouble } from "./outcomes/standing.ts";

export { SlotState };
export { stateWords } from "@weiche/proto/words.ts";

/** The checked first message of an agent. */
export interface NodeHello extends Omit<Hello, "slots"> {
  readonly node: NodeId;
  readonly slots: readonly HostedSlot[];
}

/** A slot as its agent describes it. */
export interface HostedSlot {
  readonly name: SlotName;
  readonly models: readonly ModelId[];
  /**
   * Engines that serve several models at the same time. Reports name such an engine by its first model. Undefined if no
   * engine does.
   */
  readonly engines?: readonly { readonly models: readonly ModelId[] }[];
}

/** A completed switch, or a failed start. */
export interface PastSwitch extends Omit<WirePastSwitch, "endedAgoMs"> {
  /** Monotonic ms of this router. */
  readonly endedAtMs: number;
}

/** A failure of an engine that its agent reports. */
export interface EngineFailure extends Omit<WireFailure, "agoMs"> {
  readonly model?: ModelId;
  readonly kind: EngineFailureKind;
  /** Monotonic ms of this router. */
  readonly atMs: number;
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
  /** Whether the node sent a report within the last 3 s and has an open data connection. */
  readonly reachable: boolean;
  /** Monotonic ms of the last report. */
  readonly reportedAtMs: number;
  readonly admitting: boolean;
  readonly maintenance: boolean;
  readonly slots: readonly SlotView[];
}

export interface SlotView extends SlotReport {
  readonly models: readonly ModelId[];
  /** Engines that serve several models at the same time. Undefined if no engine does. */
  readonly engines?: HostedSlot["engines"];
  /** This router's answers that the slot's engine still works on or that wait in the slot. */
  readonly inFlight: number;
  /** This router's answers that the engine has finished and clients still read. */
  readonly unread: number;
  /** Waiters for any model. */
  readonly waiting: number;
  /**
   * This router's monotonic ms since when nothing runs or waits. Undefined if something does, or if the time is
   * unknown.
   */
  readonly idleSinceMs?: number;
  /** Models whose requests fail or are slow in this slot, by this router's own attempts. */
  readonly troubles?: ReadonlyMap<ModelId, Trouble>;
}

/** Returns the number of waiters for the model's engine, for any of the engine's models. */
export function waitingFor(slot: SlotView, model: ModelId): number {
  const models: readonly string[] = servedWith(slot, model);
  return slot.waiters.reduce((sum, one) => (models.includes(one.model) ? sum + one.waiting : sum), 0);
}

/** Returns the models that the slot serves at the same time as this model, including it. */
export function servedWith({ engines }: Pick<SlotView, "engines">, model: ModelId): readonly ModelId[] {
  return engines?.find(({ models }) => models.includes(model))?.models ?? [model];
}

/**
 * Returns whether one engine of the slot serves both models. `named` is a model that the report names, such as the
 * active model.
 */
export function isServedBy(slot: Pick<SlotView, "engines">, named: ModelId | undefined, model: ModelId): boolean {
  return named === model || (named !== undefined && servedWith(slot, model).includes(named));
}
