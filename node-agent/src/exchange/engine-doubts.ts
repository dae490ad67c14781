/**
 * Finds engines that fail every request although their probe at the start passed. Three failures in a row of two accounts
 * are enough. If all are of one account, its requests may be the cause, so the engine has to fail a probe as well: no
 * account alone can have an engine restarted that works for others.
 *
 * The row ends with an answer that is whole, and with the first output of another request unless answers failed after
 * theirs. If a restart did not help, the next one follows after a pause that doubles. Meanwhile nobody pays for answers
 * that break off.
 */
import type { AccountId, ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { EngineEndpoint } from "../engines/engine.ts";
import { deadline } from "../engines/engine-wait.ts";

interface Row {
  failures: number;
  readonly accounts: Set<AccountId>;
  hadOutput: boolean;
  isSuspected: boolean;
  probedAtMs: number;
}

interface Failure {
  readonly endpoint: EngineEndpoint;
  readonly slot: SlotName;
  readonly model: ModelId;
  readonly account: AccountId;
  readonly hadOutput: boolean;
  /** Asks the engine for one token. Rejects if it fails. */
  readonly probe: (signal: AbortSignal) => Promise<unknown>;
  readonly suspect: () => void;
}

const failuresMax = 3;
const accountsMin = 2;
const probeMsMax = 10_000;
const probeEveryMs = 30_000;
export const pauseMsMin = 300_000;
const pauseMsMax = 3_600_000;

export class EngineDoubts {
  readonly #clock: Clock;
  /** A restarted engine has another endpoint. */
  readonly #rows = new WeakMap<EngineEndpoint, Row>();
  /** Of the last suspicion, by slot and model: bounded by the configuration. */
  readonly #pauses = new Map<string, { readonly untilMs: number; readonly ms: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A request has its first output. */
  output(endpoint: EngineEndpoint): void {
    if (this.#rows.get(endpoint)?.hadOutput === false) this.#rows.delete(endpoint);
  }

  /** An answer is whole. */
  served(endpoint: EngineEndpoint): void {
    this.#rows.delete(endpoint);
  }

  /** Returns whether the engine is doubted: what breaks off now is its own fault, whatever a request could provoke. */
  failed(failure: Failure): boolean {
    const nowMs = this.#clock.monotonicMs();
    let row = this.#rows.get(failure.endpoint);
    if (!row) {
      row = { failures: 0, accounts: new Set(), hadOutput: false, isSuspected: false, probedAtMs: -Infinity };
      this.#rows.set(failure.endpoint, row);
    }
    row.failures++;
    row.hadOutput ||= failure.hadOutput;
    if (row.accounts.size < accountsMin) row.accounts.add(failure.account);
    if (row.isSuspected || row.failures < failuresMax) return row.isSuspected;
    const isOfSeveral = row.accounts.size >= accountsMin;
    if (nowMs < (this.#pauses.get(keyOf(failure))?.untilMs ?? 0)) return isOfSeveral;
    if (isOfSeveral) this.#suspect(row, failure);
    else if (nowMs >= row.probedAtMs + probeEveryMs) {
      row.probedAtMs = nowMs;
      void this.#probe(row, failure);
    }
    return isOfSeveral;
  }

  async #probe(row: Row, failure: Failure): Promise<void> {
    using limit = deadline(this.#clock, probeMsMax, "the engine's answer");
    try {
      await failure.probe(limit.signal);
    } catch {
      // A busy engine may be late. One that hangs is found by its silence.
      if (!limit.signal.aborted && this.#rows.get(failure.endpoint) === row) this.#suspect(row, failure);
    }
  }

  #suspect(row: Row, failure: Failure): void {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#pauses.get(keyOf(failure));
    const isSoon = before !== undefined && nowMs < before.untilMs + pauseMsMax;
    const ms = isSoon ? Math.min(pauseMsMax, 2 * before.ms) : pauseMsMin;
    this.#pauses.set(keyOf(failure), { untilMs: nowMs + ms, ms });
    row.isSuspected = true;
    failure.suspect();
  }
}

function keyOf({ slot, model }: Failure): string {
  return `${slot} ${model}`;
}
