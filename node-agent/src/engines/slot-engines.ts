/**
 * The engines of one slot on this host. Each model's engine is absent, awake or asleep; at most one is awake.
 *
 *   absent ──start, probe──▶ awake ──retire──▶ asleep ──wake, probe──▶ awake
 *      ▲                       │                  │
 *      └── stop, exit, or any surprise at sleep, wake or probe: stopped, and started cold if it is wanted
 *
 * Calls run one after the other; the clean-up after an exit takes its turn among them.
 */
import { assert } from "@weiche/shared/assert.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { EngineStartError } from "./engine.ts";
import type { EngineEndpoint, EngineHandle, EngineSpec, ExitReport, SlotEngines, SwitchPhase } from "./engine.ts";
import { RunningEngine, type EngineHost, type EngineState } from "./running-engine.ts";
import type { SlotMemory } from "./slot-memory.ts";

export interface SlotEngineEvents {
  /** It answers: `how` says whether it was started, woken, found again or only probed. */
  engineReady(slot: SlotName, model: ModelId, how: "started" | "woken" | "adopted" | "probed", tookMs: number): void;
  engineAsleep(slot: SlotName, model: ModelId, tookMs: number): void;
  engineStopped(slot: SlotName, model: ModelId): void;
  /** A sleep, wake, probe or stop went wrong; after all but the last the engine is stopped. */
  engineSurprised(slot: SlotName, model: ModelId, what: "sleep" | "wake" | "probe" | "stop", reason: string): void;
  /** What an engine said last before its start failed: for the log only. */
  engineSaid(slot: SlotName, model: ModelId, lastLines: readonly string[]): void;
  /** An engine ended in its sleep. Of the awake one the slot tells. */
  sleeperExited(slot: SlotName, model: ModelId, report: ExitReport): void;
  /** An engine of an earlier agent is not taken over; it is stopped if it lives. */
  engineNotAdopted(slot: SlotName, model: ModelId, reason: string): void;
  /** A sleeping engine is stopped because another one needs its memory. */
  sleeperEvicted(slot: SlotName, model: ModelId): void;
}

export interface SlotEnginesOptions {
  readonly slot: SlotName;
  readonly engines: readonly EngineSpec[];
  readonly host: EngineHost;
  readonly memory: SlotMemory;
  readonly events: SlotEngineEvents;
}

type OnPhase = (phase: SwitchPhase) => void;

export class LocalSlotEngines implements SlotEngines, Disposable {
  readonly #options: SlotEnginesOptions;
  readonly #engines = new Map<ModelId, RunningEngine>();
  /** Engines that are to be put away: whether they exit before their turn is nobody's concern. */
  readonly #unwanted = new WeakSet<RunningEngine>();
  #onExit: (model: ModelId, report: ExitReport) => void = () => {};
  #activation = new AbortController();
  #turns: Promise<unknown> = Promise.resolve();

  constructor(options: SlotEnginesOptions) {
    this.#options = options;
  }

  activate(model: ModelId, signal: AbortSignal, onPhase: OnPhase): Promise<EngineEndpoint> {
    return this.#inTurn(async () => {
      this.#activation = new AbortController();
      try {
        return await this.#activate(model, AbortSignal.any([signal, this.#activation.signal]), onPhase);
      } catch (error) {
        throw error instanceof EngineStartError ? error : new EngineStartError(messageOf(error), [], { cause: error });
      }
    });
  }

  retire(model: ModelId, onPhase: OnPhase, forGood = false): Promise<void> {
    const retired = this.#engines.get(model);
    if (retired) this.#unwanted.add(retired);
    return this.#inTurn(async () => {
      const engine = this.#engines.get(model);
      if (engine && (forGood || engine.state !== "asleep")) await this.#retire(engine, onPhase, forGood);
    });
  }

  readopt(): Promise<{ readonly model: ModelId; readonly endpoint: EngineEndpoint } | undefined> {
    return this.#inTurn(() => this.#readopt());
  }

  onExit(callback: (model: ModelId, report: ExitReport) => void): void {
    this.#onExit = callback;
  }

  stopAll(): Promise<void> {
    this.#activation.abort(new Error("all engines of the slot are being stopped"));
    return this.#inTurn(async () => {
      const stopped = await Promise.allSettled([...this.#engines.values()].map((engine) => this.#stop(engine)));
      const failed = stopped.find((stop) => stop.status === "rejected");
      if (failed) throw failed.reason;
    });
  }

  /** The one that has slept longest comes first. */
  sleepers(): readonly ModelId[] {
    const asleep = [...this.#engines.values()].filter((engine) => engine.state === "asleep");
    return asleep.sort((a, b) => b.inStateMs - a.inStateMs).map((engine) => engine.spec.model);
  }

  /** The agent goes, its engines stay: they are no longer watched. */
  [Symbol.dispose](): void {
    for (const engine of this.#engines.values()) engine.unwatch();
  }

  async #activate(model: ModelId, signal: AbortSignal, onPhase: OnPhase): Promise<EngineEndpoint> {
    signal.throwIfAborted();
    const spec = this.#options.engines.find((engine) => engine.model === model);
    assert(spec, "a slot activates its own models");
    for (const other of this.#engines.values()) {
      if (other.spec !== spec && other.state !== "asleep") await this.#retire(other, onPhase);
    }
    const found = this.#engines.get(model);
    if (found && (await this.#bringBack(found, signal, onPhase))) return found.endpoint;
    return this.#startCold(spec, signal, onPhase);
  }

  /** False if the engine did not come back: it is stopped then. */
  async #bringBack(engine: RunningEngine, signal: AbortSignal, onPhase: OnPhase): Promise<boolean> {
    const wasAsleep = engine.state === "asleep";
    if (wasAsleep) await this.#waitForRoom(engine.spec, signal, onPhase, engine);
    engine.enter("changing");
    try {
      if (wasAsleep) {
        onPhase("start");
        await engine.wake(signal);
      }
      onPhase("probe");
      await engine.answer(signal);
      this.#ready(engine, wasAsleep ? "woken" : "probed");
      return true;
    } catch (error) {
      this.#surprised(engine, wasAsleep ? "wake" : "probe", error);
      await this.#stop(engine);
      signal.throwIfAborted();
      return false;
    }
  }

  async #startCold(spec: EngineSpec, signal: AbortSignal, onPhase: OnPhase): Promise<EngineEndpoint> {
    const { host, slot, memory } = this.#options;
    await this.#waitForRoom(spec, signal, onPhase);
    onPhase("start");
    const freeBeforeStart = await memory.freeBytes(freeBeforeAgeMsMax);
    const engine = this.#watch(spec, await host.launchers[spec.launcher.kind].start(spec, slot), freeBeforeStart);
    try {
      await engine.remember(false);
      const onLoaded = () => onPhase("probe");
      const isThere = spec.launcher.kind === "external";
      await (isThere ? engine.answer(signal, onLoaded) : engine.becomeReady(signal, onLoaded));
      this.#ready(engine, "started");
      return engine.endpoint;
    } catch (error) {
      const said = error instanceof EngineStartError ? error.lastLines : await engine.lastLines();
      if (said.length > 0) this.#options.events.engineSaid(slot, spec.model, said);
      await this.#stop(engine).catch(() => {});
      throw new EngineStartError(messageOf(error), said, { cause: error });
    }
  }

  async #retire(engine: RunningEngine, onPhase: OnPhase, forGood = false): Promise<void> {
    const { memory, events, slot } = this.#options;
    const { model, launcher } = engine.spec;
    const [wasAwake, awakeForMs] = [engine.state === "awake", engine.inStateMs];
    engine.enter("changing");
    onPhase("stop");
    const before = await memory.beforeLeaving(() => engine.processes(), awakeForMs, engine.freeBeforeStart);
    if (wasAwake && engine.canSleep && !forGood) {
      try {
        await engine.sleep();
        onPhase("memory");
        if (!(await memory.hasReturned(model, before))) throw new Error("its GPU memory did not come back");
        await engine.remember(true);
        engine.throwIfGone();
        events.engineAsleep(slot, model, engine.inStateMs);
        return engine.enter("asleep");
      } catch (error) {
        this.#surprised(engine, "sleep", error);
      }
    }
    await this.#stop(engine);
    onPhase("memory");
    if (launcher.kind !== "external") await memory.hasReturned(model, before);
  }

  async #readopt(): Promise<{ readonly model: ModelId; readonly endpoint: EngineEndpoint } | undefined> {
    const { host, slot } = this.#options;
    this[Symbol.dispose]();
    this.#engines.clear();
    const stored = (await host.handles.read()).filter((handle) => handle.slot === slot);
    const running = await Promise.all(
      Object.values(host.launchers).map((launcher) => launcher.running?.(slot) ?? Promise.resolve([])),
    );
    const strays = running.flat().filter((stray) => !stored.some((handle) => handle.pid === stray.pid));
    await Promise.all([
      ...strays.map((stray) => this.#refuse(stray, "it has no handle on disk")),
      ...stored.map((handle) => this.#recover(handle)),
    ]);
    const awake = [...this.#engines.values()].filter((engine) => engine.state === "changing");
    if (awake.length === 1 && (await this.#proveAdopted(awake[0]!))) {
      return { model: awake[0]!.spec.model, endpoint: awake[0]!.endpoint };
    }
    await Promise.all(awake.map((engine) => this.#stop(engine).catch(() => {})));
    return undefined;
  }

  async #recover(handle: EngineHandle): Promise<void> {
    const { host, engines } = this.#options;
    const spec = engines.find(({ model, launcher }) => model === handle.model && launcher.kind === handle.launcher);
    if (!spec) return this.#refuse(handle, "it is no longer configured");
    if (handle.asleep && spec.sleepLevel === undefined) return this.#refuse(handle, "it sleeps, but is not set up to");
    if (!(await host.launchers[handle.launcher].recover(handle, spec))) {
      return this.#refuse(handle, "it is gone, or was started from another configuration");
    }
    const engine = this.#watch(spec, handle);
    if (handle.asleep) engine.enter("asleep");
  }

  async #proveAdopted(engine: RunningEngine): Promise<boolean> {
    try {
      await engine.answer(neverAborts);
      this.#ready(engine, "adopted");
      return true;
    } catch (error) {
      this.#surprised(engine, "probe", error);
      return false;
    }
  }

  async #refuse(handle: EngineHandle, reason: string): Promise<void> {
    const { host, slot, events } = this.#options;
    events.engineNotAdopted(slot, handle.model, reason);
    try {
      await host.launchers[handle.launcher].stop(handle);
      await host.handles.remove(slot, handle.model);
    } catch (error) {
      events.engineSurprised(slot, handle.model, "stop", messageOf(error));
    }
  }

  async #waitForRoom(spec: EngineSpec, signal: AbortSignal, onPhase: OnPhase, sleeper?: RunningEngine): Promise<void> {
    const { model, memoryBytes: neededBytes } = spec;
    if (neededBytes === undefined) return;
    onPhase("memory");
    const own = async () => (await sleeper?.processes()) ?? [];
    await this.#options.memory.waitForRoom({ model, neededBytes, own }, () => this.#evictSleeper(model), signal);
  }

  /** A sleeper keeps some memory: the one that has slept longest makes room for an engine that is wanted now. */
  async #evictSleeper(wanted: ModelId): Promise<boolean> {
    const model = this.sleepers().find((sleeper) => sleeper !== wanted);
    if (model === undefined) return false;
    this.#options.events.sleeperEvicted(this.#options.slot, model);
    await this.#stop(this.#engines.get(model)!);
    return true;
  }

  #watch(spec: EngineSpec, handle: EngineHandle, freeBeforeStart?: number): RunningEngine {
    const exited = (of: RunningEngine, was: EngineState, report: ExitReport) => this.#exited(of, was, report);
    const engine = new RunningEngine(this.#options.host, spec, handle, exited, freeBeforeStart);
    this.#engines.set(spec.model, engine);
    return engine;
  }

  /** What is left of its group goes before the slot starts anything else. */
  #exited(engine: RunningEngine, was: EngineState, report: ExitReport): void {
    if (was === "asleep") this.#options.events.sleeperExited(this.#options.slot, engine.spec.model, report);
    void this.#inTurn(async () => {
      if (this.#engines.get(engine.spec.model) === engine) await this.#stop(engine).catch(() => {});
    });
    if (was === "awake" && !this.#unwanted.has(engine)) this.#onExit(engine.spec.model, report);
  }

  #ready(engine: RunningEngine, how: "started" | "woken" | "adopted" | "probed"): void {
    this.#options.events.engineReady(this.#options.slot, engine.spec.model, how, engine.inStateMs);
    engine.enter("awake");
    this.#unwanted.delete(engine);
  }

  async #stop(engine: RunningEngine): Promise<void> {
    try {
      await engine.stop();
    } catch (error) {
      this.#surprised(engine, "stop", error);
      throw error;
    }
    this.#engines.delete(engine.spec.model);
    this.#options.events.engineStopped(this.#options.slot, engine.spec.model);
  }

  #surprised(engine: RunningEngine, what: "sleep" | "wake" | "probe" | "stop", error: unknown): void {
    this.#options.events.engineSurprised(this.#options.slot, engine.spec.model, what, messageOf(error));
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#turns.then(task);
    this.#turns = turn.catch(() => {});
    return turn;
  }
}

const freeBeforeAgeMsMax = 10_000;
const neverAborts = new AbortController().signal;

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
