/** What the schemas of a request may cost together, and what they cost so far. */
import { invalid } from "@weiche/shared/errors.ts";
import type { SchemaBounds } from "../engines/dialects/schema-bounds.ts";

export class Budget {
  readonly bounds: SchemaBounds;
  size = 0;
  choices = 0;
  steps = 0;
  /** Optional properties of the object with most of them, of all that were counted here since `copy`. */
  #optionalProperties = 0;
  /** Steps of attempts that were not used, also for tools that fit without one. Shared with all copies. */
  #lost = { needed: 0, spare: 0 };

  constructor(bounds: SchemaBounds) {
    this.bounds = bounds;
  }

  copy(): Budget {
    const copy = new Budget(this.bounds);
    copy.take(this);
    copy.#lost = this.#lost;
    return copy;
  }

  take({ size, choices, steps }: Budget): void {
    Object.assign(this, { size, choices, steps });
  }

  /** Whether a tool of what was counted here is better sent in its light form, although it fits. */
  get isWide(): boolean {
    return this.#optionalProperties > this.bounds.optionalPropertiesMax;
  }

  optional(count: number): void {
    this.#optionalProperties = Math.max(this.#optionalProperties, count);
  }

  isWithin({ size, steps }: Budget): boolean {
    return this.size <= size && this.steps <= steps;
  }

  /**
   * Counts the work of an attempt that is not used. Throws when attempts took as many steps as a whole request may.
   * `spare`: what it is tried for also fits without it.
   */
  lose(attempt: Budget, at: string, kind: "needed" | "spare"): void {
    this.#lost[kind] += attempt.steps - this.steps;
    if (this.#lost[kind] > this.bounds.stepsMax) throw endless(at);
  }

  step(at: string, count = 1): void {
    this.steps += count;
    if (this.steps > this.bounds.stepsMax) throw endless(at);
  }

  spend(size: number, at: string): void {
    this.size += size;
    this.check(this.size, at);
  }

  check(size: number, at: string): void {
    const { sizeMax } = this.bounds;
    if (size > sizeMax)
      throw invalid(
        at,
        `must be a smaller schema: with this, those of the request unfold to more than ${sizeMax} characters of grammar`,
      );
  }

  choose(choices: number, at: string): void {
    const { choicesMax } = this.bounds;
    this.choices = Math.max(this.choices, choices);
    if (choices > choicesMax)
      throw invalid(
        at,
        `must be a schema with at most ${choicesMax} ways to go on at each place of the answer: here are ${choices}`,
      );
  }
}

function endless(at: string): Error {
  return invalid(at, "must be a smaller schema: with this, the schemas of the request unfold too far");
}
