/**
 * Keeps the last failure of each model in each slot, for operators. A failure is forgotten when a person has
 * acknowledged it, or when the engine has been ready for ten minutes without another one. It is in no metric.
 */
import type { EngineFailureKind } from "@weiche/proto/words.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import {
  failureLinesMax,
  failureReasonMax,
  failuresPerSlotMax,
  failureWordsMax,
} from "@weiche/shared/wire/link-bounds.ts";
import { tellingLine } from "../engines/log/telling-line.ts";

export interface EngineFailure {
  /** Increases with each failure of the node, also over restarts of the agent. */
  readonly number: bigint;
  /** Monotonic ms. */
  readonly atMs: number;
  /** Undefined if it is unknown which engine failed. */
  readonly model?: ModelId;
  readonly kind: EngineFailureKind;
  /** One line, with the line of the engine's output that explains it, if there is one. */
  readonly reason: string;
  /** Last output lines of an engine that did not start, oldest first. They are from before its first request. */
  readonly lines: readonly string[];
}

/** How long an engine must be ready until its failure is forgotten. */
const wellMs = 600_000;

interface Kept extends EngineFailure {
  readySinceMs?: number;
}

export class EngineFailures {
  readonly #clock: Clock;
  #kept: ReadonlyMap<SlotName, readonly Kept[]> = new Map();
  readonly #said = new Map<SlotName, readonly string[]>();
  #last = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Stores the last output lines of an engine whose start failed. Call it before `failed`. */
  said(slot: SlotName, lines: readonly string[]): void {
    this.#said.set(slot, lines);
  }

  failed(slot: SlotName, model: ModelId | undefined, kind: EngineFailureKind, reason: string): void {
    const said = this.#said.get(slot) ?? [];
    this.#said.delete(slot);
    const now = BigInt(this.#clock.now());
    this.#last = now > this.#last ? now : this.#last + 1n;
    const failure: Kept = {
      number: this.#last,
      atMs: this.#clock.monotonicMs(),
      model,
      kind,
      reason: oneLine([reason, tellingLine(said)].filter((part) => part !== "").join(": "), failureReasonMax),
      lines: said.slice(-failureLinesMax).map((line) => oneLine(line, failureWordsMax)),
    };
    const others = (this.#kept.get(slot) ?? []).filter((kept) => kept.model !== model);
    this.#replace(slot, [...others, failure].slice(-failuresPerSlotMax));
  }

  /** Call this when an engine of the slot is ready. */
  ready(slot: SlotName, model: ModelId): void {
    this.#said.delete(slot);
    for (const kept of this.#kept.get(slot) ?? [])
      // If it is unknown which engine failed, any engine that is ready shows that the slot works.
      if (kept.model === undefined || kept.model === model) kept.readySinceMs ??= this.#clock.monotonicMs();
  }

  /** Forgets failures up to this number. */
  acknowledge(number: bigint): void {
    // The clock of the host may have been set back since.
    if (number > this.#last) this.#last = number;
    this.#forget((kept) => kept.number <= number);
  }

  /** Failures of each slot, the oldest first. A slot's array is replaced only when its failures change. */
  get all(): ReadonlyMap<SlotName, readonly EngineFailure[]> {
    const nowMs = this.#clock.monotonicMs();
    this.#forget(({ readySinceMs }) => readySinceMs !== undefined && nowMs - readySinceMs >= wellMs);
    return this.#kept;
  }

  #forget(isOver: (kept: Kept) => boolean): void {
    for (const [slot, all] of this.#kept)
      if (all.some(isOver))
        this.#replace(
          slot,
          all.filter((kept) => !isOver(kept)),
        );
  }

  #replace(slot: SlotName, failures: readonly Kept[]): void {
    this.#kept = new Map(this.#kept).set(slot, failures);
  }
}

function oneLine(text: string, charactersMax: number): string {
  const plain = plainText(text);
  return plain.length <= charactersMax ? plain : `${plain.slice(0, charactersMax - 1)}…`;
}
