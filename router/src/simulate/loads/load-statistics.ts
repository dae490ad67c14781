/** What a load looks like: rates, lengths, bursts and how much of its prompts was sent before. */
import type { Load } from "../load.ts";

interface Lengths {
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
}

export interface LoadStatistics {
  readonly requests: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly accounts: number;
  readonly input: Lengths;
  readonly output: Lengths;
  /** Coefficient of variation of the time between requests: 1 for independent requests, more for bursts. */
  readonly gapCv: number;
  /** Requests of the busiest minute, as a multiple of the mean minute. */
  readonly worstMinute: number;
  /** The share of prompt tokens that an earlier request of the conversation sent or got. */
  readonly repeatedShare: number;
  readonly models: readonly ModelStatistics[];
}

interface ModelStatistics extends Pick<LoadStatistics, "requests" | "perSecond" | "input" | "output"> {
  readonly model: string;
}

const minuteMs = 60_000;

export function loadStatistics(load: Load): LoadStatistics {
  const models = new Map<string, Tokens>();
  const all = new Tokens();
  const accounts = new Set<string>();
  const arrivals = new Arrivals();
  const repeats = new Repeats();
  for (const { atMs, account, model, inputTokens, outputTokens, conversation } of load) {
    const own = models.get(model) ?? new Tokens();
    models.set(model, own);
    for (const tokens of [all, own]) tokens.add(inputTokens, outputTokens);
    accounts.add(account);
    arrivals.add(atMs);
    if (conversation !== undefined) repeats.add(conversation, inputTokens, outputTokens);
  }
  const { seconds, gapCv, worstMinute } = arrivals.measured();
  const partOf = (tokens: Tokens) => ({
    requests: tokens.input.length,
    perSecond: tokens.input.length / seconds,
    ...{ input: lengthsOf(tokens.input), output: lengthsOf(tokens.output) },
  });
  return {
    ...partOf(all),
    ...{ seconds, accounts: accounts.size, gapCv, worstMinute },
    repeatedShare: repeats.tokens / Math.max(1, sumOf(all.input)),
    models: [...models]
      .map(([model, tokens]) => ({ model, ...partOf(tokens) }))
      .sort((a, b) => b.requests - a.requests),
  };
}

class Tokens {
  readonly input: number[] = [];
  readonly output: number[] = [];

  add(input: number, output: number): void {
    this.input.push(input);
    this.output.push(output);
  }
}

class Arrivals {
  #count = 0;
  #firstMs = 0;
  #lastMs = 0;
  #squares = 0;
  readonly #minutes = new Map<number, number>();

  add(atMs: number): void {
    if (this.#count++ === 0) this.#firstMs = atMs;
    else this.#squares += (atMs - this.#lastMs) ** 2;
    this.#lastMs = atMs;
    const minute = Math.floor((atMs - this.#firstMs) / minuteMs);
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0) + 1);
  }

  measured() {
    const spanMs = this.#lastMs - this.#firstMs;
    const gaps = Math.max(1, this.#count - 1);
    const meanMs = spanMs / gaps;
    let most = 0;
    for (const count of this.#minutes.values()) most = Math.max(most, count);
    return {
      seconds: Math.max(1, spanMs) / 1_000,
      gapCv: spanMs === 0 ? 0 : Math.sqrt(Math.max(0, this.#squares / gaps - meanMs ** 2)) / meanMs,
      worstMinute: most / (this.#count / Math.max(1, spanMs / minuteMs)),
    };
  }
}

/** Counts prompt tokens that the conversation had before. */
class Repeats {
  tokens = 0;
  readonly #lengths = new Map<string, number>();

  add(conversation: string, inputTokens: number, outputTokens: number): void {
    this.tokens += Math.min(inputTokens, this.#lengths.get(conversation) ?? 0);
    this.#lengths.set(conversation, inputTokens + outputTokens);
  }
}

function lengthsOf(tokens: readonly number[]): Lengths {
  const sorted = Float64Array.from(tokens).sort();
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return { mean: sumOf(tokens) / Math.max(1, tokens.length), p50: at(0.5), p99: at(0.99) };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
