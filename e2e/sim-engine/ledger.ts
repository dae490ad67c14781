/**
 * Records the engine's real work for checkers: an entry per request and events of the engine. A journal also receives the
 * entries, so that they survive a crash.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";

export interface LedgerEntry {
  /** The caller's `X-Request-Id`, or else a generated id. */
  readonly id: string;
  readonly path: string;
  readonly prompt_tokens: number;
  /** The `prompt_tokens` already read for an earlier request. Undefined if the engine keeps no prompts. */
  cached_tokens?: number;
  /** Whether an earlier prompt was restored from the host's memory. */
  restored?: boolean;
  /** The tokens made so far over all choices. */
  generated: number;
  readonly startedAtMs: number;
  firstTokenAtMs?: number;
  /** Whether the answer was made to its end. */
  finished: boolean;
  /** Whether the client left or the engine gave up before the end. */
  aborted: boolean;
  finish_reason?: string;
  readonly fault?: string;
  /** A number by which the client identifies the request, because the id may change on the way. */
  readonly mark?: number;
  /** The time at which the engine had answered or noticed that the client left. */
  closedAtMs?: number;
  /** The names of the body's fields. Only `keepBodies` keeps the body itself. */
  readonly fields: readonly string[];
  readonly body?: unknown;
}

export type JournalLine =
  | ({ readonly event: "begun" } & LedgerEntry)
  /** The request has ended. */
  | ({ readonly event: "request" } & LedgerEntry)
  | {
      readonly event: "loading" | "awake" | "falling-asleep" | "asleep" | "waking" | "crash" | "exit";
      readonly atMs: number;
    };

/** The most entries. Then the oldest ones are dropped. */
const ledgerEntriesMax = 200_000;

export class Ledger {
  readonly #clock: Clock;
  readonly #keepBodies: boolean;
  readonly #journal: (line: JournalLine) => void;
  readonly #entries = new Set<LedgerEntry>();
  /** The calls that moved the engine's memory, with their bodies, oldest first. */
  readonly moves: string[] = [];

  constructor(clock: Clock, keepBodies = false, journal: (line: JournalLine) => void = () => {}) {
    this.#clock = clock;
    this.#keepBodies = keepBodies;
    this.#journal = journal;
  }

  open(request: Pick<LedgerEntry, "id" | "path" | "prompt_tokens" | "fault" | "mark">, body: object): LedgerEntry {
    const opened: LedgerEntry = {
      ...{ ...request, generated: 0, finished: false, aborted: false, startedAtMs: this.#clock.now() },
      ...{ fields: Object.keys(body), body: this.#keepBodies ? body : undefined },
    };
    this.#entries.add(opened);
    if (this.#entries.size > ledgerEntriesMax) this.#entries.delete(this.#entries.values().next().value!);
    this.#journal({ event: "begun", ...opened });
    return opened;
  }

  made(entry: LedgerEntry, tokens: number): void {
    entry.firstTokenAtMs ??= this.#clock.now();
    entry.generated += tokens;
  }

  close(entry: LedgerEntry, how: "finished" | "aborted", finishReason?: string): void {
    if (entry.closedAtMs !== undefined) return;
    entry.closedAtMs = this.#clock.now();
    entry.finished = how === "finished";
    entry.aborted = how === "aborted";
    if (finishReason !== undefined) entry.finish_reason = finishReason;
    this.#journal({ event: "request", ...entry });
  }

  /** Closes the open entries, as at the end of the process. */
  closeAll(): void {
    for (const entry of this.#entries) this.close(entry, "aborted");
  }

  note(event: Exclude<JournalLine["event"], "begun" | "request">): void {
    this.#journal({ event, atMs: this.#clock.now() });
  }

  entries(): LedgerEntry[] {
    return [...this.#entries];
  }

  clear(): void {
    this.#entries.clear();
  }
}
