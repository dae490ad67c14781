/**
 * The work of one engine from its start to its end. Prompts are read one after the other. All running answers then gain
 * a token in each step, so one counter of steps serves all of them, and each answer ends at a fixed value of the counter.
 */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import { Heap } from "./heap.ts";

/** The speed of a model's engine on its GPUs. */
export interface EngineSpeed {
  /** A step takes `baseMs` + `perRunningMs` x running answers + `perTokenMs` x tokens of their contexts. */
  readonly step: { readonly baseMs: number; readonly perRunningMs: number; readonly perTokenMs: number };
  readonly prefillTokensPerSecond: number;
  /** The tokens that the engine can hold. A request begins when its prompt and its answer fit. */
  readonly cacheTokens: number;
}

interface Work {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The prompt has been read, and the first token comes after one step. */
  began?(stepMs: number): void;
  ended(): void;
}

interface Answer {
  readonly work: Work;
  readonly endsAtStep: number;
}

/** The part of a step that rounding may lose. */
const roundingSteps = 1e-6;

export class EngineWork {
  readonly #speed: EngineSpeed;
  readonly #clock: Clock;
  /** Requests that do not fit into the cache yet. */
  readonly #queue: Work[] = [];
  readonly #answers = new Heap<Answer>((a, b) => a.endsAtStep < b.endsAtStep);
  #reservedTokens = 0;
  #contextTokens = 0;
  #steps = 0;
  #countedAtMs: number;
  #readsUntilMs = 0;
  #end: Timer | undefined;
  #isGone = false;

  constructor(speed: EngineSpeed, clock: Clock) {
    this.#speed = speed;
    this.#clock = clock;
    this.#countedAtMs = clock.monotonicMs();
  }

  add(work: Work): void {
    this.#queue.push(work);
    this.#beginQueued();
  }

  /** Drops all work, because the engine is gone. */
  kill(): void {
    this.#isGone = true;
    this.#end?.cancel();
  }

  /** An engine without other work takes a request that exceeds its cache, because it could never begin otherwise. */
  #beginQueued(): void {
    const { cacheTokens, prefillTokensPerSecond } = this.#speed;
    const nowMs = this.#clock.monotonicMs();
    while (this.#queue.length > 0) {
      const work = this.#queue[0]!;
      const needed = work.inputTokens + work.outputTokens;
      if (this.#reservedTokens > 0 && this.#reservedTokens + needed > cacheTokens) return;
      this.#queue.shift();
      this.#reservedTokens += needed;
      const readMs = (1_000 * work.inputTokens) / prefillTokensPerSecond;
      this.#readsUntilMs = Math.max(nowMs, this.#readsUntilMs) + readMs;
      if (readMs === 0 && this.#readsUntilMs === nowMs) this.#answer(work);
      else this.#clock.after(this.#readsUntilMs - nowMs, () => this.#answer(work));
    }
  }

  #answer(work: Work): void {
    if (this.#isGone) return;
    this.#count();
    this.#contextTokens += work.inputTokens;
    this.#answers.push({ work, endsAtStep: this.#steps + Math.max(1, work.outputTokens) });
    work.began?.(this.#stepMs());
    this.#plan();
  }

  #stepMs(): number {
    const { baseMs, perRunningMs, perTokenMs } = this.#speed.step;
    return baseMs + perRunningMs * this.#answers.size + perTokenMs * this.#contextTokens;
  }

  /** Counts the steps since the last count. Contexts grow meanwhile, so each step is a little slower than the last. */
  #count(): void {
    const nowMs = this.#clock.monotonicMs();
    const tookMs = nowMs - this.#countedAtMs;
    this.#countedAtMs = nowMs;
    if (this.#answers.size === 0 || tookMs === 0) return;
    const stepMs = this.#stepMs();
    const growthMs = this.#speed.step.perTokenMs * this.#answers.size;
    const steps =
      growthMs === 0 ? tookMs / stepMs : (Math.sqrt(stepMs * stepMs + 2 * growthMs * tookMs) - stepMs) / growthMs;
    this.#steps += steps;
    this.#contextTokens += steps * this.#answers.size;
  }

  /** Schedules the end of the answer that ends first. */
  #plan(): void {
    this.#end?.cancel();
    const first = this.#answers.top;
    if (!first) return;
    const steps = Math.max(0, first.endsAtStep - this.#steps);
    const growthMs = this.#speed.step.perTokenMs * this.#answers.size;
    this.#end = this.#clock.after(steps * this.#stepMs() + (growthMs * steps * steps) / 2, () => this.#endDue());
  }

  #endDue(): void {
    this.#end = undefined;
    this.#count();
    const done: Work[] = [];
    for (let first = this.#answers.top; first; first = this.#answers.top) {
      if (first.endsAtStep > this.#steps + roundingSteps) break;
      this.#answers.pop();
      const { inputTokens, outputTokens } = first.work;
      this.#contextTokens -= inputTokens + Math.max(1, outputTokens);
      this.#reservedTokens -= inputTokens + outputTokens;
      done.push(first.work);
    }
    // Sums of fractions are not exact.
    if (this.#answers.size === 0) this.#contextTokens = 0;
    this.#plan();
    for (const work of done) work.ended();
    this.#beginQueued();
  }
}
