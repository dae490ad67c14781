/**
 * A ledger of the engine's real work, for checkers: one entry per request, and moments of its own life. Entries are also
 * given to a journal, so that they outlive a crash.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";

export interface LedgerEntry {
  /** The caller's `X-Request-Id`, else one of ours. */
  readonly id: string;
  readonly path: string;
  readonly prompt_tokens: number;
  /** The part of `prompt_tokens` that it had read for an earlier request. Absent: it keeps no prompts. */
  cached_tokens?: number;
  /** An earlier prompt was brought back from the host's memory. */
  restored?: boolean;
  /** Tokens that were made, over all choices, up to now. */
  generated: number;
  readonly startedAtMs: number;
  firstTokenAtMs?: number;
  /** The answer was made to its end. */
  finished: boolean;
  /** The client left, or the engine gave up, before the end. */
  aborted: boolean;
  finish_reason?: string;
  readonly fault?: string;
  /** The number by which the client knows the request; the id may change on the way. */
  readonly mark?: number;
  /** When the engine was done with the request: answered, or noticed that the client left. */
  closedAtMs?: number;
  /** Names of the body's fields; the body itself only where a test asked for it. */
  readonly fields: readonly string[];
  readonly body?: unknown;
}

export type JournalLine =
  | ({ readonly event: "begun" } & LedgerEntry)
  /** The request is over. */
  | ({ readonly event: "request" } & LedgerEntry)
  | {
      readonly event: "loading" | "awake" | "falling-asleep" | "asleep" | "waking" | "crash" | "exit";
      readonly atMs: number;
    };

/** Beyond it the oldest entries are dropped. */
const ledgerEntriesMax = 200_000;

export class Ledger {
  readonly #clock: Clock;
  readonly #keepBodies: boolean;
  readonly #journal: (line: JournalLine) => void;
  readonly #entries = new Set<LedgerEntry>();
  /** Calls that moved its memory, with their bodies, oldest first. */
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

  /** Closes what is still open, as at the end of the process. */
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
