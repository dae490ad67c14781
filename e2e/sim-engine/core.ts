/**
 * Schedules running and waiting requests and sleep of the simulated engine. As in vLLM, requests that arrive during sleep
 * wait in an unbounded queue until the engine wakes.
 */
import type { TimerWheel } from "./timer-wheel.ts";

/** A request as the scheduler sees it. */
export interface Work {
  /** The number of simultaneous answers. Defaults to 1. */
  readonly answers?: number;
  /** The tokens of its prompt and of its answers so far. Defaults to 0. */
  readonly contextTokens?: number;
  begin(): void;
  /** Ends the request at once, like a sleep with `mode=abort`. */
  abort(): void;
  /** Ends the request with the error of a dead core. */
  fail(): void;
}

export interface CoreState {
  readonly sleeping: boolean;
  /** The number of running answers. */
  readonly running: number;
  /** The number of waiting requests. */
  readonly waiting: number;
  /** The number of requests that have waited so far. */
  readonly queued: number;
  /** How often the engine was put to sleep while requests ran, which no gateway should do. */
  readonly sleptBusy: number;
}

type Part = "weights" | "kv_cache";

export class EngineCore {
  readonly #wheel: TimerWheel;
  readonly #maxRunning: number;
  readonly #running = new Set<Work>();
  readonly #waiting = new Set<Work>();
  readonly #asleep = new Set<Part>();
  #level = 0;
  #paused = false;
  #weightsLost = false;
  #drained: (() => void) | undefined;
  #sleptBusy = 0;
  /** The number of answers of all running requests. */
  #answers = 0;
  #queued = 0;

  constructor(wheel: TimerWheel, maxRunning: number) {
    this.#wheel = wheel;
    this.#maxRunning = maxRunning;
  }

  state(): CoreState {
    const running = this.#answers;
    const waiting = this.#waiting.size;
    return { sleeping: this.sleeping, running, waiting, queued: this.#queued, sleptBusy: this.#sleptBusy };
  }

  /** The tokens of all running requests. */
  contextTokens(): number {
    let tokens = 0;
    for (const work of this.#running) tokens += work.contextTokens ?? 0;
    return tokens;
  }

  get sleeping(): boolean {
    return this.#asleep.size > 0 || this.#paused;
  }

  get sleepState(): "awake" | "weights_offloaded" | "discard_all" {
    if (this.#asleep.size === 0) return "awake";
    return this.#level === 2 ? "discard_all" : "weights_offloaded";
  }

  /** Whether the engine woke from level 2 without reloading its weights, so that it answers nonsense. */
  get gibberish(): boolean {
    return this.#weightsLost;
  }

  submit(work: Work): void {
    this.#waiting.add(work);
    this.#pump();
    if (this.#waiting.has(work) && !this.sleeping) this.#queued++;
  }

  /** Removes a request. Does nothing the second time. */
  leave(work: Work): void {
    this.#waiting.delete(work);
    if (this.#running.delete(work)) {
      this.#answers -= answersOf(work);
      if (this.#running.size === 0) this.#drained?.();
    }
    this.#pump();
  }

  abortAll(): void {
    for (const work of [...this.#running]) work.abort();
  }

  failAll(): void {
    for (const work of [...this.#running, ...this.#waiting]) work.fail();
  }

  async sleep(level: number, mode: string, ms: number): Promise<void> {
    this.#paused = true;
    if (mode === "abort") {
      if (this.#running.size > 0) this.#sleptBusy++;
      this.abortAll();
    } else if (mode === "wait" && this.#running.size > 0) {
      await new Promise<void>((resolve) => (this.#drained = resolve));
    } else if (this.#running.size > 0) {
      this.#sleptBusy++;
    }
    await this.delay(ms);
    if (level === 0) return;
    this.#level = level;
    this.#weightsLost ||= level === 2;
    this.#asleep.add("weights").add("kv_cache");
  }

  async wake(tags: readonly string[], ms: number): Promise<void> {
    await this.delay(ms);
    for (const part of ["weights", "kv_cache"] as const)
      if (tags.length === 0 || tags.includes(part)) this.#asleep.delete(part);
    if (this.#asleep.size > 0) return;
    this.#paused = false;
    this.#pump();
  }

  reloadWeights(): void {
    if (!this.#asleep.has("weights")) this.#weightsLost = false;
  }

  delay(ms: number): Promise<void> {
    return new Promise((resolve) => this.#wheel.add(this.#wheel.nowMs + ms, { due: () => resolve() }));
  }

  #pump(): void {
    if (this.sleeping) return;
    for (const work of this.#waiting) {
      if (this.#running.size > 0 && this.#answers + answersOf(work) > this.#maxRunning) return;
      this.#waiting.delete(work);
      this.#running.add(work);
      this.#answers += answersOf(work);
      work.begin();
    }
  }
}

function answersOf({ answers = 1 }: Work): number {
  return answers;
}
