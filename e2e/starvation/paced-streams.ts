/** Good streams, and the gaps between their chunks. */
import { setTimeout as sleep } from "node:timers/promises";
import { askStream, type Answer, type Question } from "../cluster/api-client.ts";
import type { Received } from "../cluster/billing-check.ts";

export const paceMs = 20;
const streams = 8;
/** Each stream takes ten seconds, so that new streams also open during an attack. */
const tokens = 500;

export interface Gaps {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** The longest time until the first byte of a stream that began meanwhile. */
  readonly startMaxMs: number;
}

export class PacedStreams {
  /** Requests without a whole answer, except requests that `stop` ended. */
  readonly cut: Answer[] = [];
  readonly received: Received[] = [];
  #gaps: number[] = [];
  #startMaxMs = 0;
  /** Arrival of the last chunk of each running stream. */
  readonly #lastMs = new Map<number, number>();
  readonly #stopping = new AbortController();
  readonly #lines: Promise<void>[];
  #marks = 0;

  constructor(question: Pick<Question, "baseUrl" | "apiKey" | "model">) {
    this.#lines = Array.from({ length: streams }, (_, line) => this.#line(question, line));
  }

  /** Measures the gaps for `ms`. */
  async measure(ms: number, signal?: AbortSignal): Promise<Gaps> {
    this.#gaps = [];
    this.#startMaxMs = 0;
    await sleep(ms, undefined, { signal });
    // A stream that is silent at the end also has a gap.
    const open = [...this.#lastMs.values()].map((lastMs) => performance.now() - lastMs);
    const gaps = [...this.#gaps, ...open.filter((gapMs) => gapMs > paceMs)].toSorted((a, b) => a - b);
    const at = (share: number) => gaps[Math.floor(gaps.length * share)] ?? Infinity;
    return {
      count: gaps.length,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      maxMs: gaps.at(-1) ?? Infinity,
      startMaxMs: this.#startMaxMs,
    };
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#lines);
  }

  async #line(question: Pick<Question, "baseUrl" | "apiKey" | "model">, line: number): Promise<void> {
    const { signal } = this.#stopping;
    // Streams start at different times, so that some begin at any time.
    const first = Math.ceil((tokens * (line + 1)) / streams);
    for (let next = first; !signal.aborted; next = tokens) {
      const startedMs = performance.now();
      const onPiece = (pieces: number) => {
        const nowMs = performance.now();
        if (pieces === 1) this.#startMaxMs = Math.max(this.#startMaxMs, nowMs - startedMs);
        const lastMs = this.#lastMs.get(line);
        if (lastMs !== undefined) this.#gaps.push(nowMs - lastMs);
        this.#lastMs.set(line, nowMs);
      };
      const mark = ++this.#marks;
      const text = `sim:tokens=${next},mark=${mark} go on`;
      const seen = await askStream({ ...question, text, signal, onPiece });
      this.#lastMs.delete(line);
      const { choices: _, vectors: __, ...rest } = seen;
      this.received.push({ ...rest, mark, kind: "stream" });
      if (seen.ending !== "whole" && !signal.aborted) this.cut.push(seen);
      if (seen.ending !== "whole") await sleep(1_000);
    }
  }
}
