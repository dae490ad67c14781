/** Checks the order in which an agent handles the engines of a slot: one phase after the other, each within its bound. */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import { BackoffRule } from "./backoff-rule.ts";
import type { SimEngine, SimulatedHost } from "./sim-host.ts";

/** The engine that the agent knows to be awake. */
export interface Serving {
  readonly model: ModelId;
  /** Changes with each start of the engine. */
  readonly origin: string;
  readonly sinceMs: number;
  suspect: boolean;
  lost: boolean;
}

/** The facts that the rules about clients check. */
interface EngineNews {
  /** `wanted`: there is a reason to start the model even if no request waits for it. */
  started(model: ModelId, wanted: boolean): void;
  ready(): void;
  lost(): void;
  putAway(serving: Serving, wishes: ReadonlySet<ModelId>): void;
  broken(rule: string): void;
}

type Phase = "adopting" | "starting" | "given up" | "serving" | "stopping" | "stuck" | "resting";

export class EngineRules {
  readonly #clock: Clock;
  readonly #host: SimulatedHost;
  readonly #limits: SlotLimits;
  readonly #news: EngineNews;
  readonly #backoff: BackoffRule;
  readonly #wishes = new Set<ModelId>();
  #phase: Phase = "adopting";
  #phaseSinceMs: number;
  #serving: Serving | undefined;
  /** The model whose engine was lost or suspected, unless another engine has started since. */
  #toRestart: ModelId | undefined;
  #switchingMs = 0;
  /** An engine that was found loading. Nothing else may start before it. */
  #toAdopt: SimEngine | undefined;
  /** The deadline of the current start. */
  #startUntilMs = Infinity;

  constructor(host: SimulatedHost, limits: SlotLimits, news: EngineNews) {
    this.#clock = host.clock;
    this.#host = host;
    this.#limits = limits;
    this.#news = news;
    this.#backoff = new BackoffRule(limits);
    this.#phaseSinceMs = this.#now;
  }

  get serving(): Serving | undefined {
    return this.#serving;
  }

  /** Whether the agent knows of no awake engine, so that no request can be served. */
  get isStuck(): boolean {
    if (this.#phase === "stuck") return true;
    const calls = this.#phase === "stopping" || this.#phase === "adopting" || this.#phase === "given up";
    return calls && this.#now >= this.#phaseSinceMs + this.#limits.stopMsMax;
  }

  /** Whether no engine is awake and no call is running. */
  get isResting(): boolean {
    return this.#phase === "resting";
  }

  /** Total time of all switches so far. */
  get switchingMs(): number {
    const switching = this.#phase === "starting" || this.#phase === "stopping";
    return this.#switchingMs + (switching ? this.#now - this.#phaseSinceMs : 0);
  }

  rests(model: ModelId): boolean {
    return this.#now < this.#backoff.notBeforeMs(model);
  }

  wished(model: ModelId): void {
    this.#wishes.add(model);
  }

  suspected(): void {
    const serving = this.#serving!;
    serving.suspect = true;
    this.#toRestart = serving.model;
    this.#backoff.failedRunning(serving.model, this.#now - serving.sinceMs, this.#now);
  }

  /** Called when the agent starts or wakes the engine. */
  activating(engine: SimEngine): void {
    const { model, loading } = engine;
    const adopts = this.#toAdopt === engine;
    if (this.#toAdopt && !adopts) this.#broken(`${model} is started instead of the engine that loads`);
    if (adopts !== (loading !== undefined)) this.#broken(`${model} is started although it loads`);
    this.#toAdopt = undefined;
    const { startMsMax } = this.#limits;
    this.#startUntilMs = Math.max((loading?.beganMs ?? this.#now) + startMsMax, this.#now + (adopts ? 10_000 : 0));
    const others = this.#host.occupants.filter((other) => !adopts || other !== engine);
    if (others.length > 0) this.#broken(`${model} is started while an engine holds the memory`);
    if (this.#phase !== "resting") this.#broken(`${model} is started while ${this.#phase}`);
    if (this.rests(model)) this.#broken(`${model} is started before its backoff is over`);
    const wanted = this.#wishes.delete(model) || this.#toRestart === model;
    if (this.#toRestart !== model) this.#toRestart = undefined;
    this.#enter("starting");
    // A start of an earlier agent continues, even in maintenance and without waiters.
    if (!adopts) this.#news.started(model, wanted);
  }

  /** Called when the agent gives up a start. */
  gaveUp({ model }: SimEngine): void {
    this.#backoff.failed(model, 0, this.#now);
    this.#enter("given up");
  }

  /** Called when the agent learns that the engine did not start. */
  notStarted({ model }: SimEngine): void {
    if (this.#phase === "starting") this.#backoff.failed(model, 0, this.#now);
    if (this.#phase === "starting" || this.#phase === "given up") this.#enter("resting");
  }

  /** Called when the agent learns that the engine is awake. */
  ready({ model, endpoint }: SimEngine): void {
    if (this.#phase !== "starting" && (this.#phase !== "adopting" || this.isStuck)) return;
    this.#serving = { model, origin: endpoint.origin, sinceMs: this.#now, suspect: false, lost: false };
    this.#toRestart = undefined;
    this.#wishes.delete(model);
    this.#enter("serving");
    this.#news.ready();
  }

  /** Called when the agent puts the engine away. */
  retiring({ model }: SimEngine): void {
    const serving = this.#serving;
    if (!serving && this.#phase !== "given up" && !this.isStuck)
      this.#broken(`${model} is put away while ${this.#phase}`);
    if (serving && !serving.lost && !serving.suspect) this.#backoff.ran(serving.model, this.#now - serving.sinceMs);
    if (serving && !serving.lost) this.#news.putAway(serving, this.#wishes);
    this.#serving = undefined;
    this.#enter("stopping");
  }

  /** Called when the agent learns that the engine is put away. */
  retired(): void {
    if (!this.isStuck) this.#enter("resting");
  }

  /** Called when the agent looks for engines of an earlier agent. */
  readopting(): void {
    if (this.#phase !== "adopting" && this.#phase !== "stuck")
      this.#broken(`the agent looks for engines while ${this.#phase}`);
    this.#enter("adopting");
  }

  foundLoading(engine: SimEngine): void {
    if (this.isStuck) return;
    this.#toAdopt = engine;
    this.#enter("resting");
  }

  foundNothing(): void {
    if (!this.isStuck) this.#enter("resting");
  }

  /** Called when the agent learns that putting away or looking failed. */
  failed(): void {
    this.#enter("stuck");
  }

  /** Called when the agent learns that the engine exited. */
  exitTold({ model }: SimEngine): void {
    if (this.#phase === "adopting") return this.#enter("stuck");
    const serving = this.#serving;
    if (!serving) return;
    if (!serving.suspect) this.#backoff.failedRunning(model, this.#now - serving.sinceMs, this.#now);
    serving.lost = true;
    this.#toRestart = model;
    this.#news.lost();
  }

  /** Checks that no phase lasts longer than its bound. */
  judge(maintenance: boolean): void {
    const { stopMsMax, backoffMsMax } = this.#limits;
    const bounds: Partial<Record<Phase, number>> = {
      adopting: stopMsMax + backoffMsMax,
      starting: this.#startUntilMs - this.#phaseSinceMs,
      "given up": stopMsMax,
      stopping: stopMsMax + backoffMsMax,
      stuck: backoffMsMax,
    };
    const ageMs = this.#now - this.#phaseSinceMs;
    if (ageMs > (bounds[this.#phase] ?? Infinity)) this.#broken(`${this.#phase} for ${ageMs} ms`);
    if (this.#toAdopt) this.#broken(`${this.#toAdopt.model} loads, and the agent does not wait for it`);
    const model = this.#toRestart;
    // A timer that is due now may not have fired yet.
    const overdue = model && this.isResting && this.#now > this.#backoff.notBeforeMs(model);
    if (overdue && !maintenance) this.#broken(`${model} was lost and is not restarted`);
  }

  #enter(phase: Phase): void {
    this.#switchingMs = this.switchingMs;
    this.#phase = phase;
    this.#phaseSinceMs = this.#now;
  }

  get #now(): number {
    return this.#clock.monotonicMs();
  }

  #broken(rule: string): void {
    this.#news.broken(rule);
  }
}
