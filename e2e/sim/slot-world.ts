/** A simulated host with one slot, its agent and its clients. A seed determines everything. */
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { asId, type AccountId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { SlotConfig, SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import type { Admission } from "@weiche/node-agent/src/slots/admission.ts";
import type { TokensUsed } from "@weiche/node-agent/src/slots/fair-shares.ts";
import type { SlotEvents } from "@weiche/node-agent/src/slots/slot-events.ts";
import type { SlotView } from "@weiche/node-agent/src/slots/slot-view.ts";
import type { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { createSlots, type Slots } from "@weiche/node-agent/src/slots/slots.ts";
import { drained, ProcessClock, SimClock } from "./sim-clock.ts";
import { SimulatedEngines } from "./sim-engines.ts";
import { SimulatedHost, type SimFaults, type SimTimes } from "./sim-host.ts";
import type { SimRequest } from "./sim-request.ts";
import { SlotRules } from "./slot-rules.ts";

/** Limits of a slot for simulations with another subject. */
export const usualLimits: SlotLimits = {
  minResidencyMs: 1_000,
  drainOpenMsMax: 10_000,
  waitersMax: 512,
  waiterMsMax: 300_000,
  backoffMsMin: 2_000,
  backoffMsMax: 30_000,
  startMsMax: 60_000,
  stopMsMax: 20_000,
  whileSwitching: "hold",
};

export interface WorldOptions {
  readonly seed: number;
  /** `places`: the most simultaneous answers. `saysPlaces`: the engine reports this number, and can never give more. */
  readonly models: ReadonlyMap<
    ModelId,
    { readonly sleeps: boolean; readonly places: number; readonly saysPlaces?: boolean }
  >;
  readonly limits: SlotLimits;
  readonly times: SimTimes;
  readonly faults: SimFaults;
  readonly longestRunMs: number;
  /** Creates the behaviour of each agent. Defaults to the real one. */
  readonly transition?: () => typeof transition;
}

export interface Visit {
  readonly model: ModelId;
  readonly runMs: number;
  /** Defaults to the same account for all. */
  readonly account?: AccountId;
  /** Defaults to 1. */
  readonly answers?: number;
  /** Time left for the whole answer. Unbounded if undefined. */
  readonly leftMs?: number;
  /** How long the client waits before it leaves. */
  readonly patienceMs?: number;
  readonly releasesTwice?: boolean;
  readonly suspects?: boolean;
  readonly used?: TokensUsed;
  /** The request was answered or refused. */
  readonly onEnd?: () => void;
}

interface Agent {
  closing: boolean;
  readonly clock: ProcessClock;
  readonly engines: SimulatedEngines;
  readonly slots: Slots;
}

const alone = asId<AccountId>("alone");
const silent = new Proxy({} as SlotEvents, { get: () => () => {} });

export class SlotWorld {
  readonly clock = new SimClock();
  readonly random: Random;
  readonly host: SimulatedHost;
  readonly rules: SlotRules;
  agent: Agent;
  /** Counts how requests ended. */
  readonly answers = { admitted: 0, refused: 0, left: 0 };
  readonly #options: WorldOptions;
  #orders = 0;
  /** The state that routers know. */
  #heard = "";

  constructor(options: WorldOptions) {
    this.#options = options;
    const { seed, models, limits, longestRunMs } = options;
    const { clock } = this;
    this.random = createRandom(seed);
    const hosted = [...models].map(([model, { sleeps, places, saysPlaces }]) => {
      return [model, { sleeps, ...(saysPlaces && { parallelMax: places }) }] as const;
    });
    this.host = new SimulatedHost({ ...options, models: new Map(hosted), clock, random: createRandom(~seed) });
    this.rules = new SlotRules({ host: this.host, limits, models, longestRunMs });
    this.agent = this.#startAgent();
  }

  /** Ends the agent like `kill -9`: clients are cut off, engines survive, and another agent starts. */
  killAgent(): void {
    this.agent.engines.detach();
    this.agent.clock.kill();
    this.agent = this.#startAgent();
  }

  /** Ends the agent like SIGTERM. Another agent starts when this one has ended. */
  closeAgent(): void {
    const { agent, rules } = this;
    agent.closing = true;
    rules.maintenance = true;
    const closed = agent.slots.close({ stopEngines: false, deadlineMs: 10_000 });
    void closed.then(() => {
      if (agent !== this.agent) return;
      if (agent.clock.pending > 0) rules.broken ??= "an agent that has closed leaves a timer";
      this.killAgent();
    });
  }

  setMaintenance(on: boolean): void {
    if (!this.agent.closing) this.rules.maintenance = on;
    this.agent.slots.setMaintenance(on);
  }

  prewarm(model: ModelId): void {
    this.rules.engines.wished(model);
    this.agent.slots.prewarm(model);
  }

  /** A client comes, waits, runs and leaves. */
  visit(visit: Visit): SimRequest {
    const { model, account = alone, answers = 1, leftMs, patienceMs } = visit;
    const { agent, clock, rules } = this;
    const sinceMs = clock.monotonicMs();
    const request: SimRequest = { order: ++this.#orders, model, account, answers, sinceMs, leftMs };
    const leaving = new AbortController();
    rules.asked(request);
    const answer = agent.slots.admit({
      model,
      account,
      answers,
      leftMs,
      routerId: `router-${request.order % 2}`,
      signal: leaving.signal,
    });
    const patience =
      patienceMs === undefined ? undefined : clock.after(patienceMs, () => this.#leave(request, leaving));
    answer.then(
      (admission) => {
        patience?.cancel();
        this.answers.admitted++;
        this.#run(visit, request, admission);
      },
      (error: unknown) => {
        patience?.cancel();
        if (!(error instanceof ApiError)) return;
        this.answers.refused++;
        rules.refused(request, error);
        visit.onEnd?.();
      },
    );
    return request;
  }

  /** Continues until `untilMs`. Returns false if a rule was broken. */
  async advanceTo(untilMs: number): Promise<boolean> {
    const { clock, rules } = this;
    do {
      await drained();
      this.#judge();
    } while (rules.broken === undefined && clock.step(untilMs));
    if (rules.broken !== undefined) return false;
    clock.advance(untilMs - clock.monotonicMs());
    this.#judge();
    return rules.broken === undefined;
  }

  #judge(): void {
    const view = this.agent.slots.views()[0]!;
    this.rules.judge(view);
    // A drain closes by time alone, so that its timer may still be due now.
    if (this.clock.isDue) return;
    const now = stateOf(view);
    if (now !== this.#heard) this.rules.broken ??= `routers know the state ${this.#heard}, but it is ${now}`;
  }

  #leave(request: SimRequest, leaving: AbortController): void {
    if (!this.rules.waiting.has(request)) return;
    this.answers.left++;
    this.rules.left(request);
    leaving.abort(new Error("the client left"));
  }

  #run(visit: Visit, request: SimRequest, admission: Admission): void {
    const { clock, rules, agent } = this;
    rules.admitted(request, admission.endpoint.origin);
    const end = () => {
      if (agent !== this.agent) return;
      timer.cancel();
      rules.released(request);
      admission.release(visit.used);
      if (visit.releasesTwice) admission.release(visit.used);
      visit.onEnd?.();
    };
    const timer = clock.after(visit.runMs, end);
    if (visit.suspects)
      clock.after(visit.runMs / 2, () => {
        if (agent !== this.agent || !rules.running.has(request)) return;
        rules.suspected(request);
        admission.suspect("no sign of life");
      });
    admission.onEngineLost(() => {
      rules.lost(request);
      timer.cancel();
      clock.after(this.random.below(1_000), end);
    });
  }

  #startAgent(): Agent {
    const { host, rules } = this;
    const { models, limits } = this.#options;
    rules.agentStarted();
    const clock = new ProcessClock(this.clock);
    const engines = new SimulatedEngines(host, rules.engines);
    const slot: SlotConfig = {
      name: asId<SlotName>("a"),
      memory: { roomMsMax: 0, makeRoomAfterMs: 0, returnMsMax: 0, returnShareMin: 0 },
      gpus: [0],
      limits,
      engines: [...models].map(([model, { places, saysPlaces }]) => ({
        model,
        dialect: "openai",
        launcher: { kind: "external", url: "http://127.0.0.1" },
        maxConcurrent: saysPlaces ? 256 : places,
      })),
    };
    const transition = this.#options.transition?.();
    const slots = createSlots({ slots: [slot], engines: () => engines, clock, events: silent, transition });
    const tell = () => (this.#heard = stateOf(slots.views()[0]!));
    tell();
    slots.onMove(tell);
    void slots.readopt();
    return { closing: false, clock, engines, slots };
  }
}

/** Returns the state that routers learn at once. */
function stateOf({ state, activeModel, nextModel }: SlotView): string {
  return `${state} ${activeModel ?? "–"} ${nextModel ?? "–"}`;
}
