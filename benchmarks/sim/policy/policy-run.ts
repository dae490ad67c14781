/**
 * One slot under a load on virtual time: the production `transition` with engines that only take time, and clients that come
 * back. Nothing else of the agent runs, so that a day takes seconds.
 */
import { unreachable } from "@weiche/shared/assert.ts";
import { asId, type AccountId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import { createSlot, wakeAtMs } from "@weiche/node-agent/src/slots/slot-state.ts";
import type { Holding, RefusalKind, Slot, SlotEffect, SlotEvent } from "@weiche/node-agent/src/slots/slot-state.ts";
import { standings } from "@weiche/node-agent/src/slots/turn-estimate.ts";
import type { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";

/** A request as the load has it. */
export interface Arrival {
  readonly atMs: number;
  readonly model: ModelId;
  readonly account: AccountId;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export interface RunOptions {
  /** In order of time. */
  readonly load: Iterable<Arrival>;
  readonly models: readonly ModelId[];
  readonly places: number;
  /** From the stop of one engine to the proof of the next. */
  readonly switchMs: number;
  readonly limits: SlotLimits;
  readonly transition: typeof transition;
}

/** How a request ended. */
export interface Outcome {
  readonly model: ModelId;
  readonly atMs: number;
  /** From its first attempt to its admission; undefined: its client gave up. */
  readonly waitedMs: number | undefined;
}

/** How long an attempt waited that had to, and how long its slot estimated when it came. */
export interface Estimate {
  readonly estimatedMs: number;
  readonly waitedMs: number;
}

export interface RunResult {
  /** Of those that were admitted. */
  readonly estimates: readonly Estimate[];
  readonly outcomes: readonly Outcome[];
  readonly refusals: Readonly<Partial<Record<RefusalKind, number>>>;
  readonly switches: number;
}

/** Tokens a second of one answer, and of its prompt before. */
export const tokensPerSecond = { prompt: 5_000, completion: 40 };
/** A client tries again after so many seconds, or after `retry-after` if that is later, and then gives up. */
export const retrySeconds = [1, 2, 4, 8, 8, 8] as const;

interface Client {
  readonly arrival: Arrival;
  attempts: number;
  asked?: { readonly atMs: number; readonly estimatedMs: number };
}

export function runPolicy(options: RunOptions): RunResult {
  return new PolicyRun(options).run();
}

class PolicyRun {
  readonly #options: RunOptions;
  readonly #clock = new VirtualClock(0);
  readonly #clients = new Map<number, Client>();
  readonly #outcomes: Outcome[] = [];
  readonly #estimates: Estimate[] = [];
  readonly #refusals: Partial<Record<RefusalKind, number>> = {};
  #slot: Slot;
  #switches = 0;
  #tickets = 0;
  #tickAtMs: number | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
    const launcher = { kind: "external", url: "http://127.0.0.1" } as const;
    const { limits, places, models } = options;
    this.#slot = createSlot(
      {
        ...{ name: asId<SlotName>("a"), gpus: [0], limits },
        memory: { roomMsMax: 0, makeRoomAfterMs: 0, returnMsMax: 0, returnShareMin: 0 },
        engines: models.map((model) => ({ model, dialect: "openai", launcher, maxConcurrent: places })),
      },
      0,
    );
  }

  run(): RunResult {
    this.#send({ kind: "readopt" });
    const load = this.#options.load[Symbol.iterator]();
    const next = () => {
      const { value, done } = load.next();
      if (done) return;
      this.#at(value.atMs, () => {
        next();
        this.#ask({ arrival: value, attempts: 0 });
      });
    };
    next();
    while (this.#clock.step());
    return { outcomes: this.#outcomes, estimates: this.#estimates, refusals: this.#refusals, switches: this.#switches };
  }

  #ask(client: Client): void {
    const ticket = ++this.#tickets;
    this.#clients.set(ticket, client);
    const { model, account } = client.arrival;
    this.#send({ kind: "request", ticket, model, account, answers: 1 });
    if (!this.#clients.has(ticket)) return;
    const atMs = this.#clock.monotonicMs();
    client.asked = { atMs, estimatedMs: standings(this.#slot, atMs, [model]).get(ticket)!.estimateMs };
  }

  #send(event: SlotEvent): void {
    const nowMs = this.#clock.monotonicMs();
    const [after, effects] = this.#options.transition(this.#slot, event, nowMs);
    this.#slot = after;
    for (const effect of effects) this.#perform(effect);
    this.#arm();
  }

  #perform(effect: SlotEffect): void {
    const { switchMs } = this.#options;
    switch (effect.kind) {
      case "admit":
        return this.#admit(effect.ticket, effect.engine.epoch, effect.holding);
      case "refuse":
        return this.#refuse(effect.ticket, effect.refusal, effect.retryAfterMs);
      case "adopt":
        return this.#later(0, { kind: "adopted", epoch: effect.epoch });
      case "stop":
        return this.#later(0, { kind: "stopped", epoch: effect.epoch });
      case "start":
        this.#switches++;
        return this.#later(switchMs, {
          kind: "started",
          epoch: effect.epoch,
          endpoint: { origin: "http://127.0.0.1" },
        });
      case "reject":
      case "giveUp":
      case "engineLost":
        throw new Error(`an engine that only takes time has no ${effect.kind}`);
      default:
        return unreachable(effect);
    }
  }

  #admit(ticket: number, epoch: number, holding: Holding): void {
    const { arrival, asked } = this.#taken(ticket);
    const nowMs = this.#clock.monotonicMs();
    if (asked) this.#estimates.push({ estimatedMs: asked.estimatedMs, waitedMs: nowMs - asked.atMs });
    const { model, atMs, promptTokens, completionTokens } = arrival;
    this.#outcomes.push({ model, atMs, waitedMs: nowMs - atMs });
    const used = { promptTokens, completionTokens };
    const seconds = promptTokens / tokensPerSecond.prompt + completionTokens / tokensPerSecond.completion;
    this.#later(1_000 * seconds, { kind: "released", epoch, holding, used });
  }

  #refuse(ticket: number, refusal: RefusalKind, retryAfterMs: number): void {
    const client = this.#taken(ticket);
    client.asked = undefined;
    this.#refusals[refusal] = (this.#refusals[refusal] ?? 0) + 1;
    const seconds = retrySeconds[client.attempts++];
    const { model, atMs } = client.arrival;
    if (seconds === undefined) return void this.#outcomes.push({ model, atMs, waitedMs: undefined });
    this.#clock.after(Math.max(1_000 * seconds, retryAfterMs), () => this.#ask(client));
  }

  #taken(ticket: number): Client {
    const client = this.#clients.get(ticket)!;
    this.#clients.delete(ticket);
    return client;
  }

  #at(atMs: number, act: () => void): void {
    this.#clock.after(atMs - this.#clock.monotonicMs(), act);
  }

  #later(ms: number, event: SlotEvent): void {
    this.#clock.after(ms, () => this.#send(event));
  }

  /** One tick at most is ahead, as in the runner. */
  #arm(): void {
    const atMs = wakeAtMs(this.#slot, this.#clock.monotonicMs());
    if (atMs === this.#tickAtMs) return;
    this.#tickAtMs = atMs;
    if (atMs === undefined) return;
    this.#at(atMs, () => {
      if (this.#tickAtMs !== atMs) return;
      this.#tickAtMs = undefined;
      this.#send({ kind: "tick" });
    });
  }
}
