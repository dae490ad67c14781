/**
 * One slot on virtual time: the production `transition` with engines that only take time. Nothing else of the agent runs,
 * so a simulated day takes seconds.
 */
import { unreachable } from "@weiche/shared/assert.ts";
import { asId, type AccountId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import { createSlot, wakeAtMs } from "@weiche/node-agent/src/slots/slot-state.ts";
import type { Holding, RefusalKind, Slot, SlotEffect, SlotEvent } from "@weiche/node-agent/src/slots/slot-state.ts";
import type { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { standings } from "@weiche/node-agent/src/slots/turn-estimate.ts";
import type { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";

/** A request of the load. */
export interface Arrival {
  readonly atMs: number;
  readonly model: ModelId;
  readonly account: AccountId;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** The speed of one answer and of its prompt, in tokens a second. */
export const tokensPerSecond = { prompt: 5_000, completion: 40 };

export interface TimedSlotOptions {
  readonly models: readonly ModelId[];
  readonly places: number;
  /** The time from the stop of one engine until the next one is ready. */
  readonly switchMs: number;
  readonly limits: SlotLimits;
  readonly transition: typeof transition;
}

/** A request with the callbacks for what happens to it. */
interface Asking {
  readonly arrival: Arrival;
  /** The request waits for an estimated time. */
  waits?(estimatedMs: number): void;
  admitted(): void;
  refused(refusal: RefusalKind, retryAfterMs: number): void;
  /** The answer has ended. */
  ended?(): void;
}

export class TimedSlot {
  /** The number of engine starts. */
  starts = 0;
  slot: Slot;
  /** Called after each event. */
  onEvent: (() => void) | undefined;
  readonly #options: TimedSlotOptions;
  readonly #clock: VirtualClock;
  readonly #asking = new Map<number, Asking>();
  #tickets = 0;
  #tickAtMs: number | undefined;

  constructor(options: TimedSlotOptions, clock: VirtualClock) {
    this.#options = options;
    this.#clock = clock;
    const launcher = { kind: "external", url: "http://127.0.0.1" } as const;
    const { limits, places, models } = options;
    this.slot = createSlot(
      {
        ...{ name: asId<SlotName>("a"), gpus: [0], limits },
        memory: { roomMsMax: 0, makeRoomAfterMs: 0, returnMsMax: 0, returnShareMin: 0 },
        engines: models.map((model) => ({ model, dialect: "openai", launcher, maxConcurrent: places })),
      },
      0,
    );
    this.#send({ kind: "readopt" });
  }

  ask(asking: Asking): void {
    const ticket = ++this.#tickets;
    this.#asking.set(ticket, asking);
    const { model, account } = asking.arrival;
    this.#send({ kind: "request", ticket, model, account, answers: 1 });
    if (!asking.waits || !this.#asking.has(ticket)) return;
    asking.waits(standings(this.slot, this.#clock.monotonicMs(), [model]).get(ticket)!.estimateMs);
  }

  #send(event: SlotEvent): void {
    const nowMs = this.#clock.monotonicMs();
    const [after, effects] = this.#options.transition(this.slot, event, nowMs);
    this.slot = after;
    for (const effect of effects) this.#perform(effect);
    this.#arm();
    this.onEvent?.();
  }

  #perform(effect: SlotEffect): void {
    const { switchMs } = this.#options;
    switch (effect.kind) {
      case "admit":
        return this.#admit(effect.ticket, effect.engine.epoch, effect.holding);
      case "refuse":
        return this.#taken(effect.ticket).refused(effect.refusal, effect.retryAfterMs);
      case "adopt":
        return this.#later(0, { kind: "adopted", epoch: effect.epoch });
      case "stop":
        return this.#later(0, { kind: "stopped", epoch: effect.epoch });
      case "start":
        this.starts++;
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
    const asking = this.#taken(ticket);
    const { promptTokens, completionTokens } = asking.arrival;
    asking.admitted();
    const used = { promptTokens, completionTokens };
    const seconds = promptTokens / tokensPerSecond.prompt + completionTokens / tokensPerSecond.completion;
    this.#clock.after(1_000 * seconds, () => {
      asking.ended?.();
      this.#send({ kind: "released", epoch, holding, used });
    });
  }

  #taken(ticket: number): Asking {
    const asking = this.#asking.get(ticket)!;
    this.#asking.delete(ticket);
    return asking;
  }

  #later(ms: number, event: SlotEvent): void {
    this.#clock.after(ms, () => this.#send(event));
  }

  /** Keeps at most one tick scheduled, like the runner. */
  #arm(): void {
    const nowMs = this.#clock.monotonicMs();
    const atMs = wakeAtMs(this.slot, nowMs);
    if (atMs === this.#tickAtMs) return;
    this.#tickAtMs = atMs;
    if (atMs === undefined) return;
    this.#clock.after(atMs - nowMs, () => {
      if (this.#tickAtMs !== atMs) return;
      this.#tickAtMs = undefined;
      this.#send({ kind: "tick" });
    });
  }
}
