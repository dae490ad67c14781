/** Counts what happens to the requests of a model. */
import { Histogram } from "./histogram.ts";

export class ModelTally {
  requests = 0;
  served = 0;
  /** Attempts, and those among them that ended with 503 or 429. A refused client tries again. */
  attempts = 0;
  refused = 0;
  limited = 0;
  /** Answers that broke off when their node failed. Their clients ask again. */
  broken = 0;
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
    this.broken += other.broken;
    this.gaveUp += other.gaveUp;
    this.wait.addAll(other.wait);
    this.firstToken.addAll(other.firstToken);
  }
}

/** The counts by model. */
export class Tally {
  readonly models = new Map<string, ModelTally>();

  of(model: string): ModelTally {
    return this.models.getOrInsertComputed(model, () => new ModelTally());
  }

  addAll({ models }: Tally): void {
    for (const [model, other] of models) this.of(model).addAll(other);
  }
}
