/**
 * One slot on virtual time: the production `transition`, whose effects are performed by engines that only take time.
 * Nothing else of the agent runs, so a simulated day takes seconds.
 */
import { unreachable } from "@weiche/shared/assert.ts";
import type { AccountId, ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { SlotConfig, SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import { createSlot, wakeAtMs } from "@weiche/node-agent/src/slots/slot-state.ts";
import type { Holding, RefusalKind, Slot, SlotEffect, SlotEvent } from "@weiche/node-agent/src/slots/slot-state.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { EngineWork, type EngineSpeed } from "./engine-work.ts";
import { SlotTimes } from "./slot-times.ts";

/** A model's engine in a slot. */
export interface TimedEngine extends EngineSpeed {
  readonly model: ModelId;
  readonly places: number;
  readonly startMs: number;
  readonly stopMs: number;
  /** The time to wake after a sleep. Undefined if the engine is stopped instead of sleeping. */
  readonly wakeMs?: number;
}

export interface TimedSlotOptions {
  readonly name: SlotName;
  readonly engines: readonly TimedEngine[];
  readonly limits: SlotLimits;
  /** The model that is active from the beginning. Undefined if the slot begins empty. */
  readonly awake?: ModelId;
  /** Replaces rules of the slot, to compare with them. */
  readonly transition?: typeof transition;
}

/** A request, and the callbacks for its admission, refusal and end. */
interface Asking {
  readonly model: ModelId;
  readonly account: AccountId;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The router that sent it, by its number. */
  readonly router: number;
  /** The request waits with this ticket. */
  waits?(ticket: number): void;
  admitted(): void;
  /** The prompt has been read, and the first token comes after one step. */
  began?(stepMs: number): void;
  refused(refusal: RefusalKind, retryAfterMs: number): void;
  ended(): void;
  /** The node has failed, and its router has noticed it. */
  lost?(): void;
}

const endpoint = { origin: "http://127.0.0.1" };

/** An event, and the places that a request gives back with it. */
interface Change {
  readonly event: SlotEvent;
  readonly ends?: Pick<Asking, "router"> & Pick<Holding, "places">;
}

export class TimedSlot {
  readonly name: SlotName;
  readonly engines: readonly TimedEngine[];
  readonly models: readonly ModelId[];
  readonly times: SlotTimes;
  slot: Slot;
  /** The number of places that requests of each router hold. Never changed in place, so that it can be kept. */
  held: readonly number[] = [];
  /** Called before each change, with the slot still as it was, and after it. */
  onBefore: (() => void) | undefined;
  onAfter: (() => void) | undefined;
  readonly #options: TimedSlotOptions;
  readonly #clock: Clock;
  readonly #transition: typeof transition;
  readonly #engines: ReadonlyMap<ModelId, TimedEngine>;
  readonly #sleeping = new Set<ModelId>();
  readonly #asking = new Map<number, Asking>();
  /** Admitted requests that have not ended. */
  readonly #admitted = new Set<Asking>();
  readonly #inbox: Change[] = [];
  #work: EngineWork | undefined;
  #isBusy = false;
  #tickets = 0;
  /** The number of failures of the node. Events of an earlier life have no effect. */
  #life = 0;
  #isDown = false;
  #tick: Timer | undefined;
  #tickAtMs: number | undefined;

  constructor(options: TimedSlotOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#transition = options.transition ?? transition;
    this.name = options.name;
    this.engines = options.engines;
    this.models = options.engines.map(({ model }) => model);
    this.#engines = new Map(options.engines.map((engine) => [engine.model, engine]));
    this.slot = createSlot(configOf(options), clock.monotonicMs());
    this.times = new SlotTimes(clock.monotonicMs());
    this.#send({ kind: "readopt" });
  }

  ask(asking: Asking): void {
    const ticket = ++this.#tickets;
    this.#asking.set(ticket, asking);
    if (this.#isDown) return;
    const { model, account } = asking;
    this.#send({ kind: "request", ticket, model, account, answers: 1 });
    if (this.#asking.has(ticket)) asking.waits?.(ticket);
  }

  /** The node loses its power. Its requests do not end until `lose` is called. */
  fail(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#isDown = true;
    this.#life++;
    this.#work?.kill();
    this.#tick?.cancel();
    [this.#tick, this.#tickAtMs] = [undefined, undefined];
    this.#sleeping.clear();
    const before = this.slot.state;
    this.slot = createSlot(configOf(this.#options), nowMs);
    this.held = [];
    this.times.moved(before, this.slot.state, nowMs);
  }

  /** Ends the requests of a node that has failed. */
  lose(): void {
    const lost = [...this.#admitted, ...this.#asking.values()];
    this.#admitted.clear();
    this.#asking.clear();
    for (const asking of lost) asking.lost?.();
  }

  /** The node is back, without a running engine. */
  boot(): void {
    this.#isDown = false;
    this.#send({ kind: "readopt" });
  }

  #send(event: SlotEvent, ends?: Change["ends"]): void {
    this.#inbox.push({ event, ends });
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let next = this.#inbox.shift(); next; next = this.#inbox.shift()) this.#take(next);
    this.#isBusy = false;
  }

  #take({ event, ends }: Change): void {
    const nowMs = this.#clock.monotonicMs();
    this.onBefore?.();
    if (ends) this.#hold(ends.router, -ends.places);
    const [after, effects] = this.#transition(this.slot, event, nowMs);
    this.times.moved(this.slot.state, after.state, nowMs);
    this.slot = after;
    for (const effect of effects) this.#perform(effect);
    this.#arm(nowMs);
    this.onAfter?.();
  }

  #perform(effect: SlotEffect): void {
    switch (effect.kind) {
      case "admit":
        return this.#admit(effect.ticket, effect.engine.epoch, effect.holding);
      case "refuse":
        return this.#taken(effect.ticket).refused(effect.refusal, effect.retryAfterMs);
      case "adopt":
        return this.#adopt(effect.epoch);
      case "stop":
        return this.#stop(effect.model, effect.epoch);
      case "start":
        return this.#start(effect.model, effect.epoch);
      case "reject":
      case "giveUp":
      case "engineLost":
        throw new Error(`an engine that only takes time has no ${effect.kind}`);
      default:
        return unreachable(effect);
    }
  }

  #adopt(epoch: number): void {
    const awake = this.#life === 0 ? this.#options.awake : undefined;
    if (awake !== undefined) this.#work = new EngineWork(this.#engines.get(awake)!, this.#clock);
    this.#send({ kind: "adopted", epoch, found: awake === undefined ? undefined : { model: awake, endpoint } });
  }

  #start(model: ModelId, epoch: number): void {
    const engine = this.#engines.get(model)!;
    const ms = this.#sleeping.delete(model) ? engine.wakeMs! : engine.startMs;
    this.#work = new EngineWork(engine, this.#clock);
    this.#later(ms, { kind: "started", epoch, endpoint });
  }

  #stop(model: ModelId, epoch: number): void {
    const { stopMs, wakeMs } = this.#engines.get(model)!;
    if (wakeMs !== undefined) this.#sleeping.add(model);
    this.#later(stopMs, { kind: "stopped", epoch });
  }

  #admit(ticket: number, epoch: number, holding: Holding): void {
    const asking = this.#taken(ticket);
    const { inputTokens, outputTokens, router } = asking;
    this.#hold(router, holding.places);
    this.#admitted.add(asking);
    asking.admitted();
    this.#work!.add({
      inputTokens,
      outputTokens,
      began: (stepMs) => asking.began?.(stepMs),
      ended: () => {
        this.#admitted.delete(asking);
        const used = { promptTokens: inputTokens, completionTokens: outputTokens };
        this.#send({ kind: "released", epoch, holding, used }, { router, places: holding.places });
        asking.ended();
      },
    });
  }

  #hold(router: number, places: number): void {
    const held = this.held.slice();
    while (held.length <= router) held.push(0);
    held[router]! += places;
    this.held = held;
  }

  #taken(ticket: number): Asking {
    const asking = this.#asking.get(ticket)!;
    this.#asking.delete(ticket);
    return asking;
  }

  #later(ms: number, event: SlotEvent): void {
    const life = this.#life;
    this.#clock.after(ms, () => {
      if (life === this.#life) this.#send(event);
    });
  }

  /** Keeps at most one tick scheduled, like the runner. */
  #arm(nowMs: number): void {
    const atMs = wakeAtMs(this.slot, nowMs);
    if (atMs === this.#tickAtMs) return;
    this.#tick?.cancel();
    this.#tickAtMs = atMs;
    if (atMs === undefined) return;
    this.#tick = this.#clock.after(atMs - nowMs, () => {
      this.#tickAtMs = undefined;
      this.#send({ kind: "tick" });
    });
  }
}

function configOf({ name, limits, engines }: TimedSlotOptions): SlotConfig {
  const launcher = { kind: "external", url: "http://127.0.0.1" } as const;
  return {
    ...{ name, gpus: [0], limits },
    memory: { roomMsMax: 0, makeRoomAfterMs: 0, returnMsMax: 0, returnShareMin: 0 },
    engines: engines.map(({ model, places }) => ({ model, dialect: "openai", launcher, maxConcurrent: places })),
  };
}
