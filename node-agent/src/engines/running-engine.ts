/**
 * One engine that exists on this host: watched from its first moment, proven, put to sleep, woken and stopped.
 *
 * On disk its handle says `asleep` only while that is certain: written after it fell asleep, taken back before it is
 * woken; in between it says which of the two it was told. So an agent that dies then leaves an engine that the next one
 * brings where it was to go, and never a second one awake.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { DialectLifecycle, DialectLifecycles, EngineFacts } from "./dialect-lifecycle.ts";
import { EngineStartError } from "./engine.ts";
import type { EngineEndpoint, EngineHandle, EngineSpec, ExitReport, Launcher, Launchers } from "./engine.ts";
import { deadline, untilReady } from "./engine-wait.ts";
import type { HandleStore } from "./handle-store.ts";
import { processesBehind } from "./launchers/processes-behind.ts";
import { runningCommand } from "./running-command.ts";
import type { EngineCommandLine } from "./shared-context.ts";

export interface EngineHost {
  readonly launchers: Launchers;
  readonly dialects: DialectLifecycles;
  readonly handles: HandleStore;
  readonly clock: Clock;
  readonly limits: EngineLimits;
}

export interface EngineLimits {
  /** One probe; the first token of a fresh engine can take long. */
  readonly probeMsMax: number;
  /** How long an engine that should be there already (woken, adopted, external) may take to answer. */
  readonly warmMsMax: number;
  readonly sleepMsMax: number;
  readonly wakeMsMax: number;
}

export const defaultEngineLimits: EngineLimits = {
  probeMsMax: 60_000,
  warmMsMax: 10_000,
  sleepMsMax: 60_000,
  wakeMsMax: 120_000,
};

/** While changing, whoever changes it deals with its exit. */
export type EngineState = "changing" | "awake" | "asleep";

export class RunningEngine {
  readonly spec: EngineSpec;
  /** GPU memory that would be free without it, as measured before it started or woke. */
  freeWithout: number | undefined;
  readonly #host: EngineHost;
  readonly #gone = new AbortController();
  readonly #unwatch: () => void;
  #handle: EngineHandle;
  #endpoint: EngineEndpoint;
  #keptBytes: number | undefined;
  #state: EngineState = "changing";
  #sinceMs: number;

  /** `onExit` is called when it exits while awake or asleep; the engine is `changing` then. */
  constructor(
    host: EngineHost,
    spec: EngineSpec,
    handle: EngineHandle,
    onExit: (engine: RunningEngine, was: EngineState, report: ExitReport) => void,
    freeWithout?: number,
  ) {
    this.#host = host;
    this.spec = spec;
    this.freeWithout = freeWithout;
    this.#handle = handle;
    this.#endpoint = handle.endpoint;
    this.#sinceMs = host.clock.monotonicMs();
    this.#unwatch = this.#launcher.onExit(handle, (report) => {
      const was = this.#state;
      this.enter("changing");
      this.#gone.abort(new EngineStartError(report.reason, report.lastLines));
      const { reason, output } = report;
      if (was !== "changing") onExit(this, was, { reason, output });
    });
  }

  get handle(): EngineHandle {
    return this.#handle;
  }

  /** Where it listens; once it is proven, with what it said of itself. */
  get endpoint(): EngineEndpoint {
    return this.#endpoint;
  }

  get state(): EngineState {
    return this.#state;
  }

  /** On the monotonic clock. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  get inStateMs(): number {
    return this.#host.clock.monotonicMs() - this.#sinceMs;
  }

  enter(state: EngineState): void {
    this.#state = state;
    this.#sinceMs = this.#host.clock.monotonicMs();
  }

  /** What it keeps of the GPU's memory is known when it is measured, if it still sleeps then. */
  fellAsleep(measured: Promise<number | undefined>): void {
    this.enter("asleep");
    this.#keptBytes = undefined;
    const sinceMs = this.#sinceMs;
    measured.then(
      (bytes) => {
        if (this.#state === "asleep" && this.#sinceMs === sinceMs) this.#keptBytes = bytes;
      },
      () => {},
    );
  }

  /** GPU memory that it keeps asleep. Undefined: not measured. */
  get keptBytes(): number | undefined {
    return this.#keptBytes;
  }

  throwIfGone(): void {
    this.#gone.signal.throwIfAborted();
  }

  /** Asks until it has made a token. Throws if it is not ready, alive and wanted at the very end. */
  async becomeReady(signal: AbortSignal, onLoaded?: () => void): Promise<void> {
    const either = AbortSignal.any([signal, this.#gone.signal]);
    const facts = await untilReady(this.#host.clock, this.#host.limits.probeMsMax, either, (limit) =>
      this.#dialect.readiness(this.#handle.endpoint, this.spec.model, limit, onLoaded),
    );
    if (this.#handle.heading) await this.remember(false);
    await this.#launcher.serve?.(this.#handle);
    // An engine that has loaded does not go because that could not be written: the next agent asks it once more.
    if (this.isLoading) await this.remember(false).catch(() => {});
    const limited = await this.#limited(facts);
    either.throwIfAborted();
    this.#endpoint = { ...this.#handle.endpoint, ...limited };
  }

  /** What it says of itself may be more than its command line lets it keep. */
  async #limited(facts: EngineFacts): Promise<EngineFacts> {
    const { onCommandLine } = this.#dialect;
    // No engine goes because it could not be looked at.
    const command = onCommandLine && (await this.#commandLine(onCommandLine.program).catch(() => undefined));
    return command ? onCommandLine.read(facts, command) : facts;
  }

  async #commandLine(program: string): Promise<EngineCommandLine | undefined> {
    const { launcher } = this.spec;
    const pids = launcher.kind === "external" ? await processesBehind(launcher.url) : await this.processes();
    return await runningCommand(pids ?? [], program, new URL(this.#handle.endpoint.origin).port);
  }

  /** The same for an engine that should be there already. */
  async answer(signal: AbortSignal, onLoaded?: () => void): Promise<void> {
    using limit = deadline(this.#host.clock, this.#host.limits.warmMsMax, "the engine's answer", signal);
    await this.becomeReady(limit.signal, onLoaded);
  }

  /** Its process was started, maybe by an earlier agent, and has not been proven yet. */
  get isLoading(): boolean {
    return this.#handle.loadingSinceMs !== undefined;
  }

  get loadingForMs(): number {
    const nowMs = this.#host.clock.now();
    return Math.max(0, nowMs - (this.#handle.loadingSinceMs ?? nowMs));
  }

  get canSleep(): boolean {
    return this.spec.sleepLevel !== undefined && this.#dialect.sleep !== undefined;
  }

  /** Harmless when it sleeps already. */
  async sleep(): Promise<void> {
    await this.remember(false, "asleep");
    using limit = deadline(this.#host.clock, this.#host.limits.sleepMsMax, "falling asleep", this.#gone.signal);
    await this.#dialect.sleep!(this.#handle.endpoint, this.spec.sleepLevel!, limit.signal);
    limit.signal.throwIfAborted();
  }

  /** Harmless when it is awake already. */
  async wake(signal: AbortSignal): Promise<void> {
    if (!this.#dialect.wake || this.spec.sleepLevel === undefined) throw new Error("it sleeps, but is not set up to");
    using limit = deadline(this.#host.clock, this.#host.limits.wakeMsMax, "waking", signal, this.#gone.signal);
    await this.remember(false, "awake");
    await this.#dialect.wake(this.#handle.endpoint, this.spec.sleepLevel, limit.signal);
    limit.signal.throwIfAborted();
  }

  /** Wakes it if it was on its way to be awake, or says that it sleeps. For an engine that an earlier agent left. */
  async wakeIfAsleep(signal: AbortSignal): Promise<void> {
    if (this.#handle.heading === "awake" || (await this.#isSleeping(signal))) await this.wake(signal);
  }

  async #isSleeping(signal: AbortSignal): Promise<boolean> {
    if (this.spec.sleepLevel === undefined || !this.#dialect.isSleeping) return false;
    const { clock, limits } = this.#host;
    using limit = deadline(clock, limits.warmMsMax, "the engine's answer", signal, this.#gone.signal);
    // One that was being started may not listen yet.
    // awaited: the deadline ends with this function
    return await untilReady(clock, limits.warmMsMax, limit.signal, (each) =>
      this.#dialect.isSleeping!(this.#handle.endpoint, each),
    );
  }

  /** Writes its handle to disk: its process is there, and whether it loads. An external engine only has to answer. */
  async rememberStart(): Promise<void> {
    const loads = this.spec.launcher.kind !== "external";
    this.#handle = { ...this.#handle, ...(loads ? { loadingSinceMs: this.#host.clock.now() } : {}) };
    await this.#host.handles.write(this.#handle);
  }

  /** Writes its handle to disk. */
  async remember(asleep: boolean, heading?: "asleep" | "awake"): Promise<void> {
    const { heading: _, asleepSinceMs: __, loadingSinceMs: ___, ...handle } = this.#handle;
    const since = asleep ? { asleepSinceMs: this.#host.clock.now() } : {};
    this.#handle = { ...handle, asleep, ...since, ...(heading ? { heading } : {}) };
    await this.#host.handles.write(this.#handle);
  }

  /** Resolves when it is gone, with all of its group, and forgotten on disk. */
  async stop(): Promise<void> {
    this.enter("changing");
    const { loadingSinceMs: _, ...handle } = this.#handle;
    this.#handle = handle;
    await this.#launcher.stop(handle);
    this.unwatch();
    await this.#host.handles.remove(this.#handle.slot, this.#handle.model);
  }

  unwatch(): void {
    this.#unwatch();
  }

  lastLines(): Promise<readonly string[]> {
    return this.#launcher.lastLines(this.#handle);
  }

  processes(): Promise<readonly number[]> {
    return this.#launcher.processes(this.#handle);
  }

  get #launcher(): Launcher {
    return this.#host.launchers[this.spec.launcher.kind];
  }

  get #dialect(): DialectLifecycle {
    return this.#host.dialects[this.spec.dialect];
  }
}
