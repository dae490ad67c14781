/** The budget for the schemas of a request, and their cost so far. */
import { invalid } from "@weiche/shared/errors.ts";
import type { SchemaBounds } from "../engines/dialects/schema-bounds.ts";

export class Budget {
  readonly bounds: SchemaBounds;
  size = 0;
  choices = 0;
  steps = 0;
  /** The most optional properties of one object, among all that were counted here since `copy`. */
  #optionalProperties = 0;
  /** Steps of attempts that were not used, including those for tools that fit without one. Shared with all copies. */
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

  /** Whether a tool that was counted here should be sent in its light form, although it fits. */
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
   * Counts the work of an unused attempt. Throws when attempts took as many steps as a whole request may. `spare`: the
   * tool fits without the attempt.
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
        `must be a smaller schema: with it, the schemas of the request unfold to more than ${sizeMax} characters of grammar`,
      );
  }

  choose(choices: number, at: string): void {
    const { choicesMax } = this.bounds;
    this.choices = Math.max(this.choices, choices);
    if (choices > choicesMax)
      throw invalid(
        at,
        `must be a schema with at most ${choicesMax} ways to continue at each place of the answer, but it has ${choices}`,
      );
  }
}

function endless(at: string): Error {
  return invalid(at, "must be a smaller schema: with it, the schemas of the request unfold too far");
}
