/**
 * Runs one slot: owns its state and performs its effects. Every change is an event in one queue. An effect that
 * completes at once queues its event, so that events are never re-entrant. There is at most one timer.
 */
import { assert, unreachable } from "@weiche/shared/assert.ts";
import { within, type Timer } from "@weiche/shared/time/clock.ts";
import type { ApiError } from "@weiche/shared/errors.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { WaitedFor } from "@weiche/shared/node-protocol.ts";
import { TransientMap } from "@weiche/shared/transient-map.ts";
import { answersError } from "../answer/engine-refusal.ts";
import { servedBy, type AwakeEngine, type EngineSpec, type SwitchPhase } from "../engines/engine.ts";
import type { Admission, AdmissionRequest } from "./admission.ts";
import { EngineLoss } from "./engine-loss.ts";
import type { TokensUsed } from "./fair-shares.ts";
import { refusalError } from "./refusal.ts";
import { slotOperations } from "./slot-operations.ts";
import type { CloseOptions, SlotOptions } from "./slot-options.ts";
import { awakeEngine, createSlot, currentEpoch, isDrainClosed, wakeAtMs } from "./slot-state.ts";
import type { Awake, Holding, RefusalKind, Slot, SlotEffect, SlotEvent, Ticket } from "./slot-state.ts";
import { activeOf, nextOf, shownState, stateWords, viewOf } from "./slot-view.ts";
import type { Running, ShownState, SlotChange, SlotView } from "./slot-view.ts";
import { transition } from "./slot.ts";
import { SwitchMeter } from "./switch-meter.ts";
import { standings, type Standing } from "./turn-estimate.ts";

interface Pending {
  readonly request: AdmissionRequest;
  readonly sinceMs: number;
  readonly waitsFor: WaitedFor;
  estimatedMs?: number;
  readonly resolve: (admission: Admission) => void;
  readonly reject: (reason: Error) => void;
  readonly onAbort: () => void;
}

export class SlotRunner {
  readonly name: SlotName;
  /** The engine of each model. The slot's state identifies an engine by the first of its models. */
  readonly models: ReadonlyMap<ModelId, EngineSpec>;
  readonly #options: SlotOptions;
  readonly #inbox: SlotEvent[] = [];
  readonly #pending = new TransientMap<Ticket, Pending>();
  /**
   * In the order of admission. The slot's state counts their places, because copies of this map would cost too much.
   */
  readonly #running = new TransientMap<Ticket, Running>();
  readonly #meter = new SwitchMeter();
  readonly #listeners = new Set<(change: SlotChange) => void>();
  #slot: Slot;
  #shown: ShownState;
  #busy = false;
  #tickets = 0;
  #timer: Timer | undefined;
  #timerAtMs: number | undefined;
  #loss = new EngineLoss();
  readonly #operations: ReturnType<typeof slotOperations>;
  readonly #adopted = Promise.withResolvers<void>();
  #closed: Promise<void> | undefined;
  #ended = false;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.name = options.config.name;
    this.models = new Map(options.config.engines.flatMap((engine) => servedBy(engine).map((model) => [model, engine])));
    this.#slot = createSlot(options.config, this.#nowMs());
    this.#shown = shownState(this.#slot.state, this.#nowMs());
    const onPhase = (epoch: number, phase: SwitchPhase) => {
      if (currentEpoch(this.#slot.state) === epoch) this.#meter.enter(phase, this.#nowMs());
    };
    this.#operations = slotOperations(options, (event) => this.#dispatch(event), onPhase);
    options.engines.onExit((model, report) => {
      options.events.engineExited(this.name, model, report);
      this.#dispatch({ kind: "exited", model });
    });
  }

  admit(request: AdmissionRequest): Promise<Admission> {
    const engine = this.models.get(request.model);
    assert(engine, "the slot has the model");
    return new Promise((resolve, reject) => {
      if (request.signal.aborted) return reject(request.signal.reason as Error);
      const ticket = ++this.#tickets;
      const onAbort = () => this.#leave(ticket);
      request.signal.addEventListener("abort", onAbort, { once: true });
      const { state } = this.#slot;
      const mayServe = awakeEngine(state)?.model === engine.model && !isDrainClosed(state, this.#nowMs());
      const waitsFor = mayServe ? "place" : "switch";
      const pending: Pending = { request, sinceMs: this.#nowMs(), waitsFor, resolve, reject, onAbort };
      this.#pending.set(ticket, pending);
      const { account, answers, leftMs } = request;
      const { model } = engine;
      this.#dispatch({ kind: "request", ticket, model, account, answers, leftMs });
      if (this.#pending.has(ticket))
        pending.estimatedMs = standings(this.#slot, this.#nowMs(), [model]).get(ticket)?.estimateMs;
    });
  }

  /** The standing of each waiting request, by the argument of its `admit` call. */
  waiting(): ReadonlyMap<AdmissionRequest, Standing> {
    const waiting = new Map<AdmissionRequest, Standing>();
    for (const [ticket, standing] of standings(this.#slot, this.#nowMs())) {
      const pending = this.#pending.get(ticket);
      if (pending) waiting.set(pending.request, standing);
    }
    return waiting;
  }

  get #surroundings() {
    const askedOf = (ticket: Ticket) => this.#pending.get(ticket)?.request.model;
    return { name: this.name, engines: this.#options.config.engines, models: [...this.models.keys()], askedOf };
  }

  view(): SlotView {
    const running = [...this.#running.values()];
    const sleepers = this.#options.engines.sleepers();
    return viewOf(this.#slot, { ...this.#surroundings, running, sleepers, phase: this.#meter.phase }, this.#nowMs());
  }

  awake(): AwakeEngine | undefined {
    const engine = awakeEngine(this.#slot.state);
    const spec = this.#options.config.engines.find(({ model }) => model === engine?.model);
    return engine && spec && { slot: this.name, spec, endpoint: engine.endpoint };
  }

  /** Calls back after each event that changed the slot. */
  onChange(listener: (change: SlotChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Looks for engines of an earlier agent. Requests wait until this ends, and the promise resolves then, even if the
   * search failed.
   */
  readopt(): Promise<void> {
    this.#dispatch({ kind: "readopt" });
    return this.#adopted.promise;
  }

  prewarm(model: ModelId): void {
    this.#dispatch({ kind: "prewarm", model: this.models.get(model)!.model });
  }

  setMaintenance(on: boolean): void {
    if (!this.#closed) this.#dispatch({ kind: "maintenance", on });
  }

  /**
   * Refuses waiting and new requests, and lets running ones end for at most `deadlineMs`. Engines keep running unless
   * `stopEngines` is set. In that case requests that still run lose their engine.
   */
  close(options: CloseOptions): Promise<void> {
    this.#closed ??= this.#close(options);
    return this.#closed;
  }

  async #close({ stopEngines, deadlineMs }: CloseOptions): Promise<void> {
    this.#dispatch({ kind: "maintenance", on: true });
    await this.#runningEnded(deadlineMs);
    this.#ended = true;
    this.#arm(this.#nowMs());
    if (!stopEngines) return;
    this.#operations.giveUp("the agent stops");
    this.#loss.tell({ byUs: true });
    await this.#options.engines.stopAll();
  }

  async #runningEnded(deadlineMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = () => this.#slot.taken === 0 && resolve();
    const forget = this.onChange(look);
    look();
    await within(this.#options.clock, deadlineMs, promise);
    forget();
  }

  #dispatch(event: SlotEvent): void {
    this.#inbox.push(event);
    if (this.#busy) return;
    this.#busy = true;
    try {
      for (let next = this.#inbox.shift(); next; next = this.#inbox.shift()) this.#take(next);
    } finally {
      this.#busy = false;
    }
  }

  #take(event: SlotEvent): void {
    const nowMs = this.#nowMs();
    const before = this.#slot;
    const [after, effects] = (this.#options.transition ?? transition)(before, event, nowMs);
    this.#slot = after;
    const engine = awakeEngine(after.state);
    if (engine && engine.epoch !== awakeEngine(before.state)?.epoch) this.#loss = new EngineLoss();
    if (after.state.kind !== "adopting") this.#adopted.resolve();
    const switched = this.#meter.moved(before.state, after.state, nowMs);
    if (switched) this.#options.events.switched(this.name, switched);
    for (const effect of effects) this.#perform(effect);
    this.#arm(nowMs);
    this.#tell(before, nowMs);
  }

  #perform(effect: SlotEffect): void {
    switch (effect.kind) {
      case "admit":
        return this.#admit(effect.ticket, effect.engine, effect.holding);
      case "refuse":
        return this.#refuse(effect.ticket, effect.refusal, refusalError(effect));
      case "reject":
        return this.#refuse(effect.ticket, "too_many_answers", answersError(effect.answersMax));
      case "adopt":
        return this.#operations.adopt(effect.epoch);
      case "start":
        return this.#operations.start(effect.model, effect.epoch);
      case "giveUp":
        return this.#operations.giveUp("the engine did not come up in time");
      case "stop":
        return this.#operations.stop(effect.model, effect.epoch, effect.forGood);
      case "engineLost":
        this.#running.clear();
        return this.#loss.tell();
      default:
        return unreachable(effect);
    }
  }

  #admit(ticket: Ticket, { model, epoch, endpoint }: Awake, holding: Holding): void {
    const loss = this.#loss;
    const release = (used?: TokensUsed) => {
      loss.forget(ticket);
      if (!this.#running.delete(ticket)) return;
      this.#dispatch({ kind: "released", epoch, holding, used });
    };
    const pending = this.#taken(ticket);
    const asked = pending?.request.model ?? model;
    const { places, sinceMs } = holding;
    this.#running.set(ticket, { routerId: pending?.request.routerId ?? "", places, sinceMs });
    if (!pending) return release();
    const waitedMs = this.#nowMs() - pending.sinceMs;
    const { estimatedMs } = pending;
    this.#options.events.requestAdmitted(this.name, asked, waitedMs, estimatedMs);
    pending.resolve({
      slot: this.name,
      engine: this.models.get(model)!,
      endpoint,
      waitedMs,
      estimatedMs,
      waitedFor: pending.waitsFor,
      onEngineLost: (listener) => loss.listen(ticket, listener),
      release,
      suspect: (reason) => {
        this.#options.events.engineSuspected(this.name, model, reason);
        this.#dispatch({ kind: "suspected", epoch });
      },
      lose: (reason) => {
        // The first request that reports it ends the engine. Reports about an earlier engine are ignored.
        if (awakeEngine(this.#slot.state)?.epoch !== epoch) return;
        this.#options.events.engineDied(this.name, model, reason);
        this.#dispatch({ kind: "exited", model });
      },
    });
  }

  #refuse(ticket: Ticket, code: RefusalKind | "too_many_answers", error: ApiError): void {
    const pending = this.#taken(ticket);
    if (!pending) return;
    this.#options.events.requestRefused(this.name, pending.request.model, code);
    pending.reject(error);
  }

  #leave(ticket: Ticket): void {
    const pending = this.#taken(ticket);
    if (!pending) return;
    this.#options.events.waiterLeft(this.name, pending.request.model);
    this.#dispatch({ kind: "left", ticket });
    pending.reject(pending.request.signal.reason as Error);
  }

  /** Removes a request from the pending ones. Returns undefined if its client left meanwhile. */
  #taken(ticket: Ticket): Pending | undefined {
    const pending = this.#pending.get(ticket);
    this.#pending.delete(ticket);
    pending?.request.signal.removeEventListener("abort", pending.onAbort);
    return pending;
  }

  /** Sets the timer to the time of the next tick. */
  #arm(nowMs: number): void {
    const atMs = this.#ended ? undefined : wakeAtMs(this.#slot, nowMs);
    if (atMs === this.#timerAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    if (atMs === undefined) return;
    this.#timer = this.#options.clock.after(atMs - nowMs, () => {
      this.#timerAtMs = undefined;
      this.#dispatch({ kind: "tick" });
    });
  }

  #tell(before: Slot, nowMs: number): void {
    const { state, taken, waiters } = this.#slot;
    const shown = shownState(state, nowMs);
    const active = activeOf(state);
    const changed = shown !== this.#shown || active !== activeOf(before.state);
    this.#shown = shown;
    if (changed) this.#options.events.stateChanged(this.name, stateWords[shown], active);
    const moved = changed || nextOf(this.#slot) !== nextOf(before);
    if (!moved && taken === before.taken && waiters === before.waiters) return;
    for (const listener of this.#listeners) listener(moved ? "state" : "load");
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
