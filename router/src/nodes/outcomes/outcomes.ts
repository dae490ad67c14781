/**
 * Records how attempts end, by node, slot and model, and decides which slots placement avoids for a model. Each router
 * knows only its own attempts. No I/O. Times are monotonic milliseconds. Memory is bounded by the models that nodes
 * host.
 */
import type { AccountId, ModelId, NodeId, SlotName } from "@weiche/shared/ids.ts";
import { isSlow, Pace, slowMsMin } from "./pace.ts";
import { Standing, type Outcome, type Trouble } from "./standing.ts";

export interface Attempted {
  readonly node: NodeId;
  readonly slot: SlotName;
  readonly model: ModelId;
  readonly account: AccountId;
  readonly bodyBytes: number;
}

export interface AttemptEnd {
  /** `answered`: the first byte came, and the end follows in a later call. */
  readonly outcome: Exclude<Outcome, "slow"> | "answered";
  /** Time to the first byte without the wait in the slot. Undefined if it does not measure the engine's pace. */
  readonly firstByteMs?: number;
}

export interface OutcomeEvents {
  attemptFailed(at: Attempted): void;
  /** Placement begins to avoid the slot for this model (`placeTroubled`), or uses it again (`placeTrusted`). */
  placeTroubled(at: Attempted, trouble: Trouble): void;
  placeTrusted(at: Attempted): void;
}

interface OfModel {
  readonly standing: Standing;
  readonly pace: Pace;
}

interface OfSlot {
  readonly models: Map<ModelId, OfModel>;
  readonly troubles: Map<ModelId, Trouble>;
}

export class Outcomes {
  readonly #nodes = new Map<NodeId, Map<SlotName, OfSlot>>();
  readonly #events: OutcomeEvents | undefined;

  constructor(events?: OutcomeEvents) {
    this.#events = events;
  }

  /**
   * Returns the models for which the slot is avoided. The object is live, and stays the same until the node is
   * forgotten.
   */
  troublesOf(node: NodeId, slot: SlotName): ReadonlyMap<ModelId, Trouble> {
    return this.#slot(node, slot).troubles;
  }

  /**
   * Call before an attempt is sent. Call the returned function with the attempt's end. It ignores calls after the end.
   */
  began(at: Attempted, nowMs: number): (end: AttemptEnd, nowMs: number) => void {
    const ofSlot = this.#slot(at.node, at.slot);
    const { standing, pace } = ofSlot.models.getOrInsertComputed(at.model, () => ({
      standing: new Standing(),
      pace: new Pace(),
    }));
    const begun = standing.began(nowMs);
    if (begun.isTrial) ofSlot.troubles.set(at.model, standing.trouble!);
    let isOver = false;
    return ({ outcome, firstByteMs }, endedMs) => {
      if (isOver) return;
      if (outcome === "answered") {
        standing.answered(begun, endedMs);
        return this.#show(at, ofSlot, standing.trouble);
      }
      isOver = true;
      if (outcome === "failed") this.#events?.attemptFailed(at);
      const isLate = outcome === "served" && firstByteMs !== undefined && this.#isSlow(at, firstByteMs);
      if (firstByteMs !== undefined) pace.take(firstByteMs, at.bodyBytes);
      standing.ended(begun, isLate ? "slow" : outcome, at.account, endedMs);
      this.#show(at, ofSlot, standing.trouble);
    };
  }

  /** Forgets the node's other slots. */
  retain(node: NodeId, slots: readonly SlotName[]): void {
    const known = this.#nodes.get(node);
    for (const slot of known?.keys() ?? []) if (!slots.includes(slot)) known!.delete(slot);
  }

  forget(node: NodeId): void {
    this.#nodes.delete(node);
  }

  #show(at: Attempted, { troubles }: OfSlot, trouble: Trouble | undefined): void {
    const was = troubles.has(at.model);
    if (trouble) troubles.set(at.model, trouble);
    else troubles.delete(at.model);
    if (trouble && !was) this.#events?.placeTroubled(at, trouble);
    if (!trouble && was) this.#events?.placeTrusted(at);
  }

  #isSlow(at: Attempted, firstByteMs: number): boolean {
    if (firstByteMs < slowMsMin) return false;
    const others: number[] = [];
    for (const [node, slots] of this.#nodes)
      for (const [slot, { models, troubles }] of slots) {
        const usual = models.get(at.model)?.pace.usual;
        const isOther = node !== at.node || slot !== at.slot;
        if (isOther && usual !== undefined && !troubles.has(at.model)) others.push(usual);
      }
    return isSlow(firstByteMs, at.bodyBytes, others);
  }

  #slot(node: NodeId, slot: SlotName): OfSlot {
    return this.#nodes
      .getOrInsertComputed(node, () => new Map<SlotName, OfSlot>())
      .getOrInsertComputed(slot, () => ({ models: new Map(), troubles: new Map() }));
  }
}
