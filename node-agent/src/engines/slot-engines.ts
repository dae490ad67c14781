/**
 * The engines of one slot on this host, of which at most one is awake. An engine that exits, or fails to sleep, wake or
 * answer, is stopped. Calls run one after another, and the clean-up after an exit does too.
 */
import { assert } from "@weiche/shared/assert.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import { EngineStartError, messageOf, type Sleeper, type SlotEngines, type SwitchPhase } from "./engine.ts";
import type { EngineEndpoint, EngineHandle, EngineSpec, ExitReport, FoundEngine } from "./engine.ts";
import { recoverEngines } from "./engine-recovery.ts";
import { RunningEngine, type EngineState } from "./running-engine.ts";
import type { SlotEnginesOptions } from "./slot-engines-options.ts";
import { missesMemory, type MemoryBefore } from "./slot-memory.ts";

type OnPhase = (phase: SwitchPhase) => void;

export class LocalSlotEngines implements SlotEngines, Disposable {
  readonly #options: SlotEnginesOptions;
  readonly #engines = new Map<ModelId, RunningEngine>();
  /** Engines for which `retire` was called. Their exits are no longer reported. */
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

  readopt(): Promise<FoundEngine | undefined> {
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

  sleepers(): readonly Sleeper[] {
    const asleep = [...this.#engines.values()].filter((engine) => engine.state === "asleep");
    asleep.sort((a, b) => a.sinceMs - b.sinceMs);
    return asleep.map(({ spec, keptBytes }) => ({ model: spec.model, keptBytes }));
  }

  [Symbol.dispose](): void {
    for (const engine of this.#engines.values()) engine.unwatch();
  }

  async #activate(model: ModelId, signal: AbortSignal, onPhase: OnPhase): Promise<EngineEndpoint> {
    const found = this.#engines.get(model);
    if (found?.isLoading) return this.#comeUp(found, "adopted", signal, onPhase);
    signal.throwIfAborted();
    const spec = this.#options.engines.find((engine) => engine.model === model);
    assert(spec, "a slot activates its own models");
    for (const other of this.#engines.values()) {
      if (other.spec !== spec && other.state !== "asleep") await this.#retire(other, onPhase);
    }
    if (found && (await this.#bringBack(found, signal, onPhase))) return found.endpoint;
    return this.#startCold(spec, signal, onPhase);
  }

  async #bringBack(engine: RunningEngine, signal: AbortSignal, onPhase: OnPhase): Promise<boolean> {
    const wasAsleep = engine.state === "asleep";
    if (wasAsleep) await this.#waitForRoom(engine.spec, signal, onPhase, engine);
    engine.enter("changing");
    try {
      if (wasAsleep) {
        onPhase("start");
        engine.freeWithout = await this.#options.memory.freeWithout(engine.spec, engine.keptBytes);
        await engine.wake(signal);
      }
      onPhase("probe");
      await engine.answer(signal);
      this.#ready(engine, wasAsleep ? "woken" : "probed");
      return true;
    } catch (error) {
      this.#surprised(engine, wasAsleep ? "wake" : "probe", error);
      await this.#clearAway(engine);
      signal.throwIfAborted();
      return false;
    }
  }

  /** If the engine's output says that GPU memory was missing, evicts a sleeper and tries again. */
  async #startCold(spec: EngineSpec, signal: AbortSignal, onPhase: OnPhase): Promise<EngineEndpoint> {
    const { host, memory, slot } = this.#options;
    for (;;) {
      await this.#waitForRoom(spec, signal, onPhase);
      try {
        onPhase("start");
        const freeWithout = await memory.freeWithout(spec);
        const handle = await host.launchers[spec.launcher.kind].start(spec, slot);
        return await this.#comeUp(this.#watch(spec, handle, freeWithout), "started", signal, onPhase);
      } catch (error) {
        if (signal.aborted || !(error instanceof EngineStartError) || !missesMemory(error.lastLines)) throw error;
        if (await this.#evictSleeper(spec.model)) continue;
        const holders = await memory.foreignHolders();
        throw holders ? new EngineStartError(`${error.message}; ${holders}`, error.lastLines) : error;
      }
    }
  }

  /** Waits until a new or adopted process is ready. Stops it if that fails. */
  async #comeUp(
    engine: RunningEngine,
    how: "started" | "adopted",
    signal: AbortSignal,
    onPhase: OnPhase,
  ): Promise<EngineEndpoint> {
    const { model, launcher } = engine.spec;
    try {
      if (how === "started") await engine.rememberStart();
      const onLoaded = () => onPhase("probe");
      await (launcher.kind === "external" ? engine.answer(signal, onLoaded) : engine.becomeReady(signal, onLoaded));
      if (how === "adopted")
        engine.freeWithout = await this.#options.memory.freeWithoutRunning(() => engine.processes());
      this.#ready(engine, how);
      return engine.endpoint;
    } catch (error) {
      const said = error instanceof EngineStartError ? error.lastLines : await engine.lastLines();
      if (said.length > 0) this.#options.events.engineSaid(this.#options.slot, model, said);
      await this.#clearAway(engine).catch(() => {});
      throw new EngineStartError(messageOf(error), said, { cause: error });
    }
  }

  async #retire(engine: RunningEngine, onPhase: OnPhase, forGood = false): Promise<void> {
    const { memory } = this.#options;
    const [wasAwake, awakeForMs] = [engine.state === "awake", engine.inStateMs];
    engine.enter("changing");
    onPhase("stop");
    const before = await memory.beforeLeaving(() => engine.processes(), awakeForMs, engine.freeWithout);
    if (wasAwake && before) await memory.learn(engine.spec, before.heldBytes);
    if (wasAwake && engine.canSleep && !forGood && (await this.#fallAsleep(engine, before, onPhase))) return;
    await this.#clearAway(engine, onPhase, before);
  }

  async #fallAsleep(engine: RunningEngine, before: MemoryBefore | undefined, onPhase: OnPhase): Promise<boolean> {
    const { memory, events, slot } = this.#options;
    const { model } = engine.spec;
    try {
      await engine.sleep();
      onPhase("memory");
      if (!(await memory.hasReturned(model, before))) throw new Error("its GPU memory did not come back");
      await engine.remember(true);
      engine.throwIfGone();
      events.engineAsleep(slot, model, engine.inStateMs);
      // Measured in the background, so that no switch waits for it.
      engine.fellAsleep(memory.keptBytes(() => engine.processes(), before));
      return true;
    } catch (error) {
      this.#surprised(engine, "sleep", error);
      return false;
    }
  }

  async #readopt(): Promise<FoundEngine | undefined> {
    const { host, slot, engines, events, memory } = this.#options;
    this[Symbol.dispose]();
    this.#engines.clear();
    await memory.recall(engines);
    const awake: RunningEngine[] = [];
    for (const { spec, handle } of await recoverEngines(slot, engines, host, events)) {
      const engine = this.#watch(spec, handle);
      if (handle.asleep) engine.fellAsleep(memory.keptBytes(() => engine.processes(), undefined));
      else if (handle.heading === "asleep") void this.#inTurn(() => this.#completeSleep(engine)).catch(() => {});
      else awake.push(engine);
    }
    const [engine] = awake;
    if (engine && awake.length === 1) {
      const { model } = engine.spec;
      if (engine.isLoading) return { model, loadingForMs: engine.loadingForMs };
      if (await this.#proveAdopted(engine)) return { model, endpoint: engine.endpoint };
    }
    await Promise.all(awake.map((each) => this.#stop(each).catch(() => {})));
    return undefined;
  }

  async #completeSleep(engine: RunningEngine): Promise<void> {
    if (!(await this.#fallAsleep(engine, undefined, () => {}))) await this.#stop(engine);
  }

  async #proveAdopted(engine: RunningEngine): Promise<boolean> {
    const { signal } = new AbortController();
    try {
      await engine.wakeIfAsleep(signal);
      await engine.answer(signal);
      engine.freeWithout = await this.#options.memory.freeWithoutRunning(() => engine.processes());
      this.#ready(engine, "adopted");
      return true;
    } catch (error) {
      this.#surprised(engine, "probe", error);
      return false;
    }
  }

  async #waitForRoom(spec: EngineSpec, signal: AbortSignal, onPhase: OnPhase, sleeper?: RunningEngine): Promise<void> {
    const { memory, forgotten } = this.#options;
    await forgotten;
    // An estimated need evicts a sleeper only if the sleepers together hold enough.
    const makeRoom = (missingBytes: number) =>
      this.#evictSleeper(spec.model, spec.memoryBytes === undefined ? missingBytes : 0);
    const ownBytes = async () => sleeper && ((await memory.heldBy(await sleeper.processes())) ?? sleeper.keptBytes);
    await memory.waitForRoom(spec, { ownBytes, makeRoom, onWait: () => onPhase("memory") }, signal);
  }

  /**
   * Stops the engine that has slept longest. Returns false if none holds memory, or all together hold less than
   * `keptBytesMin`.
   */
  async #evictSleeper(wanted: ModelId, keptBytesMin = 0): Promise<boolean> {
    const sleepers = this.sleepers().filter(({ model, keptBytes }) => model !== wanted && keptBytes !== 0);
    const kept = sleepers.reduce((sum, { keptBytes = 0 }) => sum + keptBytes, 0);
    const sleeper = sleepers[0];
    if (!sleeper || kept < keptBytesMin) return false;
    this.#options.events.sleeperEvicted(this.#options.slot, sleeper.model);
    await this.#stop(this.#engines.get(sleeper.model)!);
    return true;
  }

  #watch(spec: EngineSpec, handle: EngineHandle, freeWithout?: number): RunningEngine {
    const exited = (of: RunningEngine, was: EngineState, report: ExitReport) => this.#exited(of, was, report);
    const engine = new RunningEngine(this.#options.host, spec, handle, exited, freeWithout);
    this.#engines.set(spec.model, engine);
    return engine;
  }

  /** Stops the remaining processes of the engine before the slot starts anything else. */
  #exited(engine: RunningEngine, was: EngineState, report: ExitReport): void {
    if (was === "asleep") this.#options.events.sleeperExited(this.#options.slot, engine.spec.model, report);
    void this.#inTurn(async () => {
      if (this.#engines.get(engine.spec.model) !== engine) return;
      await (was === "asleep" ? this.#stop(engine) : this.#clearAway(engine)).catch(() => {});
    });
    if (was === "awake" && !this.#unwanted.has(engine)) this.#onExit(engine.spec.model, report);
  }

  /** Throws if the engine has exited since its probe, because no event would report that. */
  #ready(engine: RunningEngine, how: "started" | "woken" | "adopted" | "probed"): void {
    engine.throwIfGone();
    this.#options.events.engineReady(this.#options.slot, engine.spec.model, how, engine.inStateMs);
    engine.enter("awake");
    this.#unwanted.delete(engine);
  }

  /** Stops an engine and waits for its memory. Call it while no other engine of the slot is awake. */
  async #clearAway(engine: RunningEngine, onPhase: OnPhase = () => {}, known?: MemoryBefore): Promise<void> {
    const { memory } = this.#options;
    const before = known ?? (await memory.beforeLeaving(() => engine.processes(), 0, engine.freeWithout));
    await this.#stop(engine);
    onPhase("memory");
    if (engine.spec.launcher.kind !== "external") await memory.hasReturned(engine.spec.model, before);
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
