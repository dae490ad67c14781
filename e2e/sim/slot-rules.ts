/** Rules that must always hold for a slot. They use only requests and answers of clients, and calls to the engines. */
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";
import type { ApiError } from "@weiche/shared/errors.ts";
import type { SlotLimits } from "@weiche/node-agent/src/config/config.ts";
import { WireState, type SlotView } from "@weiche/node-agent/src/slots/slot-view.ts";
import { EngineRules, type Serving } from "./engine-rules.ts";
import { HeldRule, turnsOf } from "./held-rule.ts";
import { ReserveRule } from "./reserve-rule.ts";
import type { SimRequest } from "./sim-request.ts";
import type { SimulatedHost } from "./sim-host.ts";
import { TurnRule } from "./turn-rule.ts";

interface RulesOptions {
  readonly host: SimulatedHost;
  readonly limits: SlotLimits;
  /** `places`: the most simultaneous answers. `saysPlaces`: the engine reports this number, which bounds one request. */
  readonly models: ReadonlyMap<ModelId, { readonly places: number; readonly saysPlaces?: boolean }>;
  readonly longestRunMs: number;
}

export class SlotRules {
  /** In order of arrival. */
  readonly waiting = new Set<SimRequest>();
  readonly running = new Set<SimRequest>();
  maintenance = false;
  /** The first rule that was broken. */
  broken: string | undefined;
  engines: EngineRules;
  readonly #options: RulesOptions;
  readonly #limits: SlotLimits;
  /** Requests that do not know yet that their engine is lost. */
  #untold = new Set<SimRequest>();
  /** Checks that wait until all clients have been notified. */
  #toJudge: (() => void)[] = [];
  readonly #turns: TurnRule;
  #held = new HeldRule();
  #reserve = new ReserveRule();

  constructor(options: RulesOptions) {
    this.#options = options;
    this.#limits = options.limits;
    this.#turns = new TurnRule(options.limits, options.longestRunMs);
    this.engines = this.#watchEngines();
  }

  /** Called when a new agent replaces a killed one, whose clients are gone. */
  agentStarted(): void {
    this.waiting.clear();
    this.running.clear();
    this.#untold.clear();
    this.#toJudge = [];
    this.#turns.begin();
    this.#held = new HeldRule();
    this.#reserve = new ReserveRule();
    this.maintenance = false;
    this.engines = this.#watchEngines();
  }

  #watchEngines(): EngineRules {
    return new EngineRules(this.#options.host, this.#limits, {
      started: (model, wanted) => {
        if (this.maintenance) this.#broken(`${model} is started in maintenance`);
        this.#toJudge.push(() => {
          const [oldest] = this.waiting;
          if (oldest ? oldest.model !== model : !wanted) this.#broken(`${model} is started out of turn`);
        });
      },
      ready: () => {
        this.#followDrain("anew");
        const next = this.#oldestOther(this.engines.serving!.model);
        if (next) this.#bind(next);
      },
      lost: () => {
        this.#untold = new Set(this.running);
        this.running.clear();
      },
      putAway: (serving, wishes) => {
        const closed = this.#isClosed;
        this.#toJudge.push(() => this.#judgePuttingAway(serving, wishes, closed));
      },
      broken: (rule) => this.#broken(rule),
    });
  }

  #judgePuttingAway({ model, suspect, sinceMs }: Serving, wishes: ReadonlySet<ModelId>, closed: boolean): void {
    if (this.running.size > 0) this.#broken(`${model} is put away while a request runs on it`);
    if (suspect) return;
    if (this.maintenance) this.#broken(`${model} is put away in maintenance`);
    const wished = this.waiting.size === 0 && [...wishes].some((wish) => wish !== model);
    if (!this.#oldestOther(model) && !wished) this.#broken(`${model} is put away without reason`);
    const rested = this.#now >= sinceMs + this.#limits.minResidencyMs;
    if (!rested && !closed) this.#broken(`${model} is put away before its residency is over`);
  }

  // The following rules concern requests and their answers.

  asked(request: SimRequest): void {
    const serving = this.engines.serving;
    if (serving && !serving.suspect && serving.model !== request.model && !this.#oldestOther(serving.model))
      this.#bind(request);
    request.tooLate = serving?.model === request.model && !serving.suspect && this.#isClosed;
    this.waiting.add(request);
    this.#reserve.asked(request);
    this.#followDrain();
  }

  admitted(request: SimRequest, origin: string): void {
    const { model } = request;
    const serving = this.engines.serving;
    if (!this.#gone(request)) this.#broken("a request is admitted that does not wait");
    if (!serving || serving.origin !== origin || serving.model !== model || serving.lost)
      return this.#broken(`${model} does not run`);
    if (serving.suspect) this.#broken(`a request for ${model} is admitted to an engine under suspicion`);
    if (this.maintenance) this.#broken("a request is admitted in maintenance");
    request.answer = { kind: "admitted", atMs: this.#now };
    request.origin = origin;
    this.running.add(request);
    if (this.#taken > this.#placesOf(model)) this.#broken(`${model} has too many simultaneous answers`);
    if (this.#isTooMuch(request)) this.#broken(`${model} gets a request for more answers than it can give`);
    const before = this.#nextOf(model).find(({ account }) => account === request.account);
    if (before && before.order < request.order)
      this.#broken(`a request for ${model} overtakes an earlier request of its account`);
    if (!this.#isClosed && this.#reserve.isTaken(request, this.#engine(model)))
      this.#broken(`a request for ${model} takes a place that is kept for others`);
    this.#reserve.admitted(request);
    const other = this.#oldestOther(model);
    const late = other && this.#isClosed && request.order > other.order && serving.sinceMs !== this.#now;
    if (late) this.#broken(`a request for ${model} is admitted although the drain is closed`);
    this.#judgeWait(request);
  }

  #bind(request: SimRequest): void {
    this.#turns.bind(request, this.engines.serving!.model, this.#moment);
  }

  #judgeWait(request: SimRequest): void {
    const { model, sinceMs } = request;
    if (this.#now - sinceMs > this.#limits.waiterMsMax)
      this.#broken(`a waiter for ${model} is admitted after its bound`);
    // During its model's turn, the shares of accounts decide which request is next.
    for (const one of [request, ...this.waiting])
      if (one.model === model && !this.#turns.isInTime(one, this.#moment))
        this.#broken(`the first request for ${model} waited longer than drain, longest request and switch`);
  }

  /** Returns false if the request did not wait. */
  #gone(request: SimRequest): boolean {
    this.#turns.gone(request, this.waiting, this.#now);
    return this.waiting.delete(request);
  }

  refused(request: SimRequest, error: ApiError): void {
    request.answer = { kind: error.kind, atMs: this.#now };
    this.#gone(request);
    const { model, sinceMs } = request;
    const { waiterMsMax, waitersMax } = this.#limits;
    if (error.kind === "invalid_request") {
      if (!this.#isTooMuch(request)) this.#broken(`a request for ${model} is rejected that it could serve`);
      return this.#followDrain();
    }
    if (!(error.retryAfterSeconds! > 0)) this.#broken("a refusal has no time to come back");
    const same = this.engines.serving?.model === model ? this.engines.serving : undefined;
    const sound: Partial<Record<typeof error.kind, boolean>> = {
      maintenance: this.maintenance,
      model_switching: request.tooLate === true && this.#turns.isTooLate(request, error),
      overloaded: this.#now >= sinceMs + waiterMsMax || this.#waitingFor(model).length >= waitersMax,
      model_unavailable: this.engines.rests(model) || this.engines.isStuck,
    };
    if (!sound[error.kind]) this.#broken(`a request for ${model} is refused as ${error.kind} without reason`);
    const isForPlaces = error.kind === "overloaded" && same && !same.suspect && !this.#isClosed;
    const seconds = error.retryAfterSeconds!;
    const oldestMs = this.#now - waiterMsMax;
    const turns = turnsOf(request, this.#waitingFor(model), this.#placesOf(model), oldestMs);
    if (isForPlaces && !this.#held.isHonest(model, seconds, turns, this.#now))
      this.#broken(`a client of ${model} gets the wrong time to come back, ${seconds} s`);
    this.#held.told(model, seconds, this.#now);
    this.#followDrain();
  }

  left(request: SimRequest): void {
    request.answer = { kind: "left", atMs: this.#now };
    this.#gone(request);
    this.#followDrain();
  }

  released(request: SimRequest): void {
    if (this.running.delete(request)) this.#held.ended(request.model, this.#now - request.answer!.atMs);
    this.#untold.delete(request);
  }

  suspected(request: SimRequest): void {
    const serving = this.engines.serving;
    if (serving && serving.origin === request.origin && !serving.suspect && !serving.lost) this.engines.suspected();
  }

  /** Called when the request's client learns that its engine is lost. */
  lost(request: SimRequest): void {
    if (!this.#untold.delete(request)) this.#broken("a request loses an engine that runs");
  }

  // The following rules hold between any two events.

  judge(view: SlotView): void {
    for (const judge of this.#toJudge.splice(0)) judge();
    const [oldest] = this.waiting;
    if (oldest && this.#now > oldest.sinceMs + this.#limits.waiterMsMax) this.#broken("a waiter is forgotten");
    let wanted = 0;
    const waiting = new Map<ModelId, number>();
    for (const { model, answers, ...rest } of this.waiting) {
      if (this.#turns.isHopeless(rest))
        this.#broken(`a request for ${model} is held although its time ends before its turn`);
      wanted += answers;
      waiting.set(model, (waiting.get(model) ?? 0) + 1);
    }
    for (const [model, count] of waiting)
      if (count > this.#limits.waitersMax) this.#broken(`too many wait for ${model}`);
    if (view.waiting !== wanted) this.#broken(`${view.waiting} waiting answers are reported, not ${wanted}`);
    if (view.running !== this.#taken) this.#broken(`${view.running} running answers are reported, not ${this.#taken}`);
    if (this.#untold.size > 0) this.#broken("a request does not learn that its engine is lost");
    if (view.state === WireState.DRAINING_OPEN && view.stateAgeMs > this.#limits.drainOpenMsMax)
      this.#broken("a drain stays open");
    if (view.state === WireState.DRAINING_CLOSED && !this.engines.serving?.suspect && !this.#isClosed)
      this.#broken("a turn ends before its time");
    this.engines.judge(this.maintenance);
    if (this.maintenance) return;
    if (this.engines.isResting && this.waiting.size > 0) this.#broken("a request waits and nothing is started");
    if (this.engines.serving) this.#judgeServing(this.engines.serving);
  }

  #judgeServing({ model, sinceMs, suspect }: Serving): void {
    const other = this.#oldestOther(model);
    const closed = this.#isClosed;
    const next = this.#nextOf(model).filter(({ order }) => !closed || (other && order < other.order));
    if (next.length > 0 && !suspect) this.#judgeFree(model, next, closed);
    if (this.running.size > 0) return;
    // Timers that are due now may not have fired yet.
    const before = this.#now - 1;
    const overdue = suspect || (closed && this.#turns.isOver(before));
    const rested = other && before >= Math.max(other.sinceMs, sinceMs + this.#limits.minResidencyMs);
    if (overdue || rested) this.#broken(`${model} is idle and others wait`);
  }

  /** `next`: the next request of each account. A request that may not take a free place may block others. */
  #judgeFree(model: ModelId, next: readonly SimRequest[], closed: boolean): void {
    const free = this.#placesOf(model) - this.#taken;
    const engine = this.#engine(model);
    const fits = next.every((request) => this.#needs(request) <= free);
    const kept = !closed && next.some((request) => this.#reserve.mayKeep(request, free, engine));
    if (fits && !kept) this.#broken(`${model} has places and a waiter is not admitted`);
    if (next.some((one) => this.#isTooMuch(one))) this.#broken(`a request waits for ${model} that it can never serve`);
  }

  #engine(model: ModelId) {
    const { running, waiting } = this;
    const needs = (request: SimRequest) => this.#needs(request);
    return { places: this.#placesOf(model), nowMs: this.#now, running, waiting, needs };
  }

  /** Returns the oldest waiter of each account. */
  #nextOf(model: ModelId): readonly SimRequest[] {
    const next = new Map<AccountId, SimRequest>();
    for (const request of this.waiting)
      if (request.model === model && !next.has(request.account)) next.set(request.account, request);
    return [...next.values()];
  }

  #waitingFor(model: ModelId): readonly SimRequest[] {
    return [...this.waiting].filter((request) => request.model === model);
  }

  #placesOf(model: ModelId): number {
    return this.#options.models.get(model)!.places;
  }

  /** Returns the places that the request takes, at most all places. */
  #needs({ model, answers }: SimRequest): number {
    return Math.min(answers, this.#placesOf(model));
  }

  #isTooMuch({ model, answers }: SimRequest): boolean {
    const { places, saysPlaces } = this.#options.models.get(model)!;
    return saysPlaces === true && answers > places;
  }

  /** Number of taken places. */
  get #taken(): number {
    return [...this.running].reduce((taken, request) => taken + this.#needs(request), 0);
  }

  #oldestOther(model: ModelId): SimRequest | undefined {
    for (const request of this.waiting) if (request.model !== model) return request;
    return undefined;
  }

  /** Call after each change of the waiting requests or of the engine. */
  #followDrain(anew?: "anew"): void {
    if (anew) this.#turns.begin();
    const { serving } = this.engines;
    this.#turns.follow(serving && this.#oldestOther(serving.model), serving);
  }

  get #isClosed(): boolean {
    return this.#turns.isOver(this.#now);
  }

  get #moment() {
    return { nowMs: this.#now, switchingMs: this.engines.switchingMs };
  }

  get #now(): number {
    return this.#options.host.clock.monotonicMs();
  }

  /** Records the first broken rule. An exception would pass through the code under test. */
  #broken(rule: string): void {
    this.broken ??= rule;
  }
}
