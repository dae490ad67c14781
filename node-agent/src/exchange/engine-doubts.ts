/**
 * Finds engines that fail every request although their first probe passed. Three consecutive failures of two accounts
 * are enough. If all failures are of one account, its requests may be the cause, so the engine must also fail a probe.
 * No single account can then restart an engine that works for others. A failure that a request can provoke is weaker
 * evidence, because one person may have two accounts. Without a failed probe it takes five accounts.
 *
 * A complete answer resets the failures. The first output of another request does too, unless answers failed after
 * output. If a restart did not help, the next one follows after a pause that doubles. During the pause an engine is
 * doubted only while it fails its probe, because doubt makes answers free.
 */
import type { AccountId, ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { EngineEndpoint } from "../engines/engine.ts";
import { deadline } from "../engines/engine-wait.ts";

interface Failures {
  count: number;
  readonly accounts: Set<AccountId>;
}

interface Row {
  readonly all: Failures;
  /** Failures that no request can provoke. */
  readonly unprovoked: Failures;
  hadOutput: boolean;
  isSuspected: boolean;
  hasFailedProbe: boolean;
  probedAtMs: number;
}

interface Failure {
  readonly endpoint: EngineEndpoint;
  readonly slot: SlotName;
  readonly model: ModelId;
  readonly account: AccountId;
  readonly hadOutput: boolean;
  /** Whether the content of a request can be the cause. */
  readonly isProvokable: boolean;
  /** Requests one token from the engine. Rejects if the engine fails. */
  readonly probe: (signal: AbortSignal) => Promise<unknown>;
  readonly suspect: () => void;
}

const failuresMax = 3;
const accountsMin = 2;
const provokingAccountsMin = 5;
const probeMsMax = 10_000;
const probeEveryMs = 30_000;
export const pauseMsMin = 300_000;
const pauseMsMax = 3_600_000;

export class EngineDoubts {
  readonly #clock: Clock;
  /** Failures by endpoint, because a restarted engine has another endpoint. */
  readonly #rows = new WeakMap<EngineEndpoint, Row>();
  /** The pause of the last suspicion, by slot and model. The configuration limits the number of entries. */
  readonly #pauses = new Map<string, { readonly untilMs: number; readonly ms: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records the first output of a request. */
  output(endpoint: EngineEndpoint): void {
    if (this.#rows.get(endpoint)?.hadOutput === false) this.#rows.delete(endpoint);
  }

  /** Records a complete answer. */
  served(endpoint: EngineEndpoint): void {
    this.#rows.delete(endpoint);
  }

  /**
   * Records a failure. Returns whether the engine is doubted: its broken answers are then free, even if a request could
   * have provoked them.
   */
  failed(failure: Failure): boolean {
    const nowMs = this.#clock.monotonicMs();
    const row = this.#rows.get(failure.endpoint) ?? emptyRow();
    this.#rows.set(failure.endpoint, row);
    add(row.all, failure);
    if (!failure.isProvokable) add(row.unprovoked, failure);
    row.hadOutput ||= failure.hadOutput;
    if (!row.isSuspected && row.all.count >= failuresMax) {
      if (isOfSeveral(row) && !this.#isPausing(failure)) this.#suspect(row, failure);
      else if (nowMs >= row.probedAtMs + probeEveryMs) {
        row.probedAtMs = nowMs;
        void this.#probe(row, failure);
      }
    }
    return row.isSuspected || row.hasFailedProbe;
  }

  async #probe(row: Row, failure: Failure): Promise<void> {
    using limit = deadline(this.#clock, probeMsMax, "the engine's answer");
    try {
      await failure.probe(limit.signal);
      row.hasFailedProbe = false;
    } catch {
      // A busy engine may be late. A hanging engine is found by its silence.
      if (limit.signal.aborted || this.#rows.get(failure.endpoint) !== row) return;
      row.hasFailedProbe = true;
      if (!row.isSuspected && !this.#isPausing(failure)) this.#suspect(row, failure);
    }
  }

  #isPausing(failure: Failure): boolean {
    return this.#clock.monotonicMs() < (this.#pauses.get(keyOf(failure))?.untilMs ?? 0);
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

function emptyRow(): Row {
  const none = (): Failures => ({ count: 0, accounts: new Set() });
  return {
    ...{ all: none(), unprovoked: none(), probedAtMs: -Infinity },
    ...{ hadOutput: false, isSuspected: false, hasFailedProbe: false },
  };
}

function add(failures: Failures, { account }: Failure): void {
  failures.count++;
  if (failures.accounts.size < provokingAccountsMin) failures.accounts.add(account);
}

/** Returns whether the failures are of so many accounts that no single person can be the cause. */
function isOfSeveral({ all, unprovoked }: Row): boolean {
  if (unprovoked.count >= failuresMax && unprovoked.accounts.size >= accountsMin) return true;
  return all.accounts.size >= provokingAccountsMin;
}

function keyOf({ slot, model }: Failure): string {
  return `${slot} ${model}`;
}
