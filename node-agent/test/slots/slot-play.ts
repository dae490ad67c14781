/** A slot with a sequence of events, described in words. */
import { asId, type AccountId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { FoundEngine } from "../../src/engines/engine.ts";
import type { TokensUsed } from "../../src/slots/fair-shares.ts";
import type { SlotConfig, SlotLimits } from "../../src/config/config.ts";
import {
  createSlot,
  currentEpoch,
  wakeAtMs,
  type Holding,
  type Slot,
  type SlotEffect,
  type SlotEvent,
} from "../../src/slots/slot-state.ts";
import { stateWords, viewOf, type SlotView } from "../../src/slots/slot-view.ts";
import { transition } from "../../src/slots/slot.ts";

export const [a, b, c] = ["a", "b", "c"].map((name) => asId<ModelId>(name)) as [ModelId, ModelId, ModelId];
export const config: SlotConfig = {
  name: asId<SlotName>("s"),
  memory: { roomMsMax: 0, makeRoomAfterMs: 0, returnMsMax: 0, returnShareMin: 0 },
  gpus: [],
  engines: [a, b, c].map((model) => ({
    model,
    dialect: "openai",
    launcher: { kind: "external", url: "http://127.0.0.1" },
    maxConcurrent: 2,
  })),
  limits: {
    minResidencyMs: 5_000,
    drainOpenMsMax: 10_000,
    waitersMax: 4,
    waiterMsMax: 300_000,
    backoffMsMin: 2_000,
    backoffMsMax: 30_000,
    startMsMax: 60_000,
    stopMsMax: 20_000,
    whileSwitching: "hold",
  },
};
export const alone = asId<AccountId>("alone");
const nothing: Holding = { account: alone, places: 1, cost: 0, sinceMs: 0 };
export const endpoint = { origin: "http://127.0.0.1:1" };

export class Play {
  slot: Slot;
  nowMs = 0;
  #tickets = 0;
  readonly #admitted = new Map<number, { readonly epoch: number; readonly holding: Holding }>();

  constructor(limits: Partial<SlotLimits> = {}) {
    this.slot = createSlot({ ...config, limits: { ...config.limits, ...limits } }, 0);
  }

  /** Reports that an earlier agent left no engine. */
  begin(): void {
    this.event({ kind: "readopt" });
    this.news("adopted");
  }

  /** Returns the effects of the event, in words. */
  event(event: SlotEvent): string[] {
    const [after, effects] = transition(this.slot, event, this.nowMs);
    this.slot = after;
    for (const effect of effects)
      if (effect.kind === "admit")
        this.#admitted.set(effect.ticket, { epoch: effect.engine.epoch, holding: effect.holding });
    return effects.map(inWords);
  }

  /** Sends a request. Requests have the tickets 1, 2, 3 … */
  request(model: ModelId, answers = 1, account: AccountId = alone, leftMs?: number): string[] {
    return this.event({ kind: "request", ticket: ++this.#tickets, model, account, answers, leftMs });
  }

  /** Ends a request. One that was never admitted counts as one on an earlier engine. */
  release(ticket: number, used?: TokensUsed): string[] {
    const { epoch, holding } = this.#admitted.get(ticket) ?? { epoch: -1, holding: nothing };
    return this.event({ kind: "released", epoch, holding, used });
  }

  /** Ends a running request, if there is one, on the awake engine. */
  releaseHolding(holding: Holding | undefined): string[] {
    const epoch = currentEpoch(this.slot.state) ?? -1;
    return holding ? this.event({ kind: "released", epoch, holding }) : [];
  }

  /** Sends a request for each of these models, one after another. */
  requests(...models: readonly ModelId[]): string[] {
    return models.flatMap((model) => this.request(model));
  }

  exits(model: ModelId): string[] {
    return this.event({ kind: "exited", model });
  }

  /** Reports an engine of an earlier agent. */
  found(found: FoundEngine): string[] {
    return this.event({ kind: "adopted", epoch: currentEpoch(this.slot.state) ?? 0, found });
  }

  maintenance(on: boolean): string[] {
    return this.event({ kind: "maintenance", on });
  }

  /** Closes the drain and ends the running request, so that the engine is stopped. */
  drain(ticket: number): string[] {
    return [...this.pass(10_000), ...this.release(ticket)];
  }

  leave(ticket: number): string[] {
    return this.event({ kind: "left", ticket });
  }

  /** Sends an event about the engine operation in progress. */
  news(kind: "started" | "startFailed" | "stopped" | "stopFailed" | "adopted" | "adoptFailed" | "suspected"): string[] {
    return this.event({ kind, epoch: currentEpoch(this.slot.state) ?? 0, endpoint });
  }

  /** Lets time pass. The slot is woken whenever it requested it. */
  pass(ms: number): string[] {
    const untilMs = this.nowMs + ms;
    const words: string[] = [];
    for (let at = wakeAtMs(this.slot, this.nowMs); at !== undefined && at <= untilMs; at = wakeAtMs(this.slot, at)) {
      this.nowMs = at;
      words.push(...this.event({ kind: "tick" }));
    }
    this.nowMs = untilMs;
    return words;
  }

  get view(): SlotView {
    return viewOf(
      this.slot,
      {
        ...{ name: config.name, engines: config.engines, models: config.engines.map(({ model }) => model) },
        ...{ askedOf: () => undefined, running: [], sleepers: [] },
      },
      this.nowMs,
    );
  }

  /** For example `draining-open a->b, bc wait, 1 run`. */
  get state(): string {
    const { state, activeModel, nextModel, running } = this.view;
    const waiting = this.slot.waiters.map((waiter) => waiter.model).join("");
    const models = [activeModel, nextModel].filter(Boolean).join("->");
    return `${stateWords[state]}${models && ` ${models}`}${waiting && `, ${waiting} wait`}${running > 0 ? `, ${running} run` : ""}`;
  }
}

function inWords(effect: SlotEffect): string {
  switch (effect.kind) {
    case "admit":
      return `admit ${effect.ticket}`;
    case "refuse":
      return `refuse ${effect.ticket} ${effect.refusal} ${effect.retryAfterMs}`;
    case "reject":
      return `reject ${effect.ticket}: at most ${effect.answersMax}`;
    case "start":
      return `start ${effect.model}`;
    case "stop":
      return `stop ${effect.model}${effect.forGood ? " for good" : ""}`;
    case "adopt":
    case "giveUp":
    case "engineLost":
      return effect.kind;
  }
}

/** Returns a slot whose model was started for this many requests. As many of them run as there are places. */
export function active(model: ModelId, requests: number, limits: Partial<SlotLimits> = {}): Play {
  const play = new Play(limits);
  play.begin();
  for (let count = 0; count < requests; count++) play.request(model);
  play.news("started");
  return play;
}
