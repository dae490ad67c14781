/** Counts what happens to requests, by model and by part of the load's duration. */
import { Histogram } from "./histogram.ts";

/** The parts of a load's duration in charts. */
export const parts = 96;

export class ModelTally {
  requests = 0;
  served = 0;
  /** Attempts, and those among them that ended with 503 or 429. A refused client tries again. */
  attempts = 0;
  refused = 0;
  limited = 0;
  /** Requests whose clients gave up. */
  gaveUp = 0;
  /** From the first attempt to the admission, of requests that were served. */
  readonly wait = new Histogram();
  /** From the first attempt to the first token. */
  readonly firstToken = new Histogram();

  addAll(other: ModelTally): void {
    this.requests += other.requests;
    this.served += other.served;
    this.attempts += other.attempts;
    this.refused += other.refused;
    this.limited += other.limited;
    this.gaveUp += other.gaveUp;
    this.wait.addAll(other.wait);
    this.firstToken.addAll(other.firstToken);
  }
}

export class Tally {
  readonly models = new Map<string, ModelTally>();
  /** Waits of each part of the duration, by the arrival of the request. */
  readonly waits = Array.from({ length: parts }, () => new Histogram());
  readonly #durationMs: number;

  constructor(durationMs: number) {
    this.#durationMs = Math.max(1, durationMs);
  }

  of(model: string): ModelTally {
    let tally = this.models.get(model);
    if (!tally) this.models.set(model, (tally = new ModelTally()));
    return tally;
  }

  waited(tally: ModelTally, atMs: number, waitedMs: number): void {
    tally.wait.add(waitedMs);
    this.waits[Math.min(parts - 1, Math.floor((parts * atMs) / this.#durationMs))]!.add(waitedMs);
  }
}
