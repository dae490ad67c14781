/**
 * One engine of this host. The handle on disk contains `asleep` only while that is certain. While the engine falls
 * asleep or wakes, `heading` names the state that it is to enter. If the agent dies then, the next agent completes the
 * transition, so that no second engine is ever awake.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { DialectLifecycle, DialectLifecycles, EngineFacts } from "./dialect-lifecycle.ts";
import { EngineStartError, servedBy } from "./engine.ts";
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
  readonly limits: Readonly<typeof defaultEngineLimits>;
}

export const defaultEngineLimits = {
  /** Time limit of one probe. The first token of a new engine can take long. */
  probeMsMax: 60_000,
  /** Time limit until an engine that should already run (woken, adopted, external) is ready. */
  warmMsMax: 10_000,
  sleepMsMax: 60_000,
  wakeMsMax: 120_000,
};

/** In state `changing`, the code that changes the engine handles its exit. */
export type EngineState = "changing" | "awake" | "asleep";

export class RunningEngine {
  readonly spec: EngineSpec;
  /** Bytes of GPU memory that would be free without this engine, measured before it started or woke. */
  freeWithout: number | undefined;
  /** Bytes of GPU memory that it holds asleep. Undefined if not measured. */
  keptBytes: number | undefined;
  readonly #host: EngineHost;
  readonly #gone = new AbortController();
  /** Stops watching for its exit. */
  readonly unwatch: () => void;
  handle: EngineHandle;
  /** Its address and, once ready, the limits that it reported. */
  endpoint: EngineEndpoint;
  state: EngineState = "changing";
  /** Monotonic time at which it entered its state. */
  sinceMs: number;

  /** Calls `onExit` when it exits while awake or asleep. Its state is then `changing`. */
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
    this.handle = handle;
    this.endpoint = handle.endpoint;
    this.sinceMs = host.clock.monotonicMs();
    this.unwatch = this.#launcher.onExit(handle, (report) => {
      const was = this.state;
      this.enter("changing");
      this.#gone.abort(new EngineStartError(report.reason, report.lastLines));
      const { reason, output } = report;
      if (was !== "changing") onExit(this, was, { reason, output });
    });
  }

  get inStateMs(): number {
    return this.#host.clock.monotonicMs() - this.sinceMs;
  }

  enter(state: EngineState): void {
    this.state = state;
    this.sinceMs = this.#host.clock.monotonicMs();
  }

  /** Sets `keptBytes` when `measured` resolves, if the engine still sleeps then. */
  fellAsleep(measured: Promise<number | undefined>): void {
    this.enter("asleep");
    this.keptBytes = undefined;
    const sinceMs = this.sinceMs;
    const take = (bytes: number | undefined) => {
      if (this.state === "asleep" && this.sinceMs === sinceMs) this.keptBytes = bytes;
    };
    measured.then(take, () => {});
  }

  throwIfGone(): void {
    this.#gone.signal.throwIfAborted();
  }

  /** Probes until the engine has generated a token. Rejects if it exits, or the signal aborts, before the end. */
  async becomeReady(signal: AbortSignal, onLoaded?: () => void): Promise<void> {
    const either = AbortSignal.any([signal, this.#gone.signal]);
    const facts = await untilReady(this.#host.clock, this.#host.limits.probeMsMax, either, (limit) =>
      this.#prove(limit, onLoaded),
    );
    if (this.handle.heading) await this.remember(false);
    await this.#launcher.serve?.(this.handle);
    // A failed write must not stop a loaded engine, because the next agent would only probe it again.
    if (this.isLoading) await this.remember(false).catch(() => {});
    const limited = await this.#limited(facts);
    either.throwIfAborted();
    this.endpoint = { ...this.handle.endpoint, ...limited };
  }

  /** Each model must answer, because an adapter may fail to load while its base model works. */
  async #prove(signal: AbortSignal, onLoaded?: () => void): Promise<EngineFacts> {
    const { endpoint } = this.handle;
    const [first, ...others] = servedBy(this.spec);
    const facts = await this.#dialect.readiness(endpoint, first!, signal, onLoaded);
    for (const model of others) await this.#dialect.readiness(endpoint, model, signal);
    return facts;
  }

  async #limited(facts: EngineFacts): Promise<EngineFacts> {
    const { onCommandLine } = this.#dialect;
    // An unreadable command line must not stop the engine.
    const command = onCommandLine && (await this.#commandLine(onCommandLine.program).catch(() => undefined));
    return command ? onCommandLine.read(facts, command) : facts;
  }

  async #commandLine(program: string): Promise<EngineCommandLine | undefined> {
    const { launcher } = this.spec;
    const pids = launcher.kind === "external" ? await processesBehind(launcher.url) : await this.processes();
    return await runningCommand(pids ?? [], program, new URL(this.handle.endpoint.origin).port);
  }

  async answer(signal: AbortSignal, onLoaded?: () => void): Promise<void> {
    using limit = deadline(this.#host.clock, this.#host.limits.warmMsMax, "the engine's answer", signal);
    await this.becomeReady(limit.signal, onLoaded);
  }

  /** Whether its process, perhaps started by an earlier agent, is not ready yet. */
  get isLoading(): boolean {
    return this.handle.loadingSinceMs !== undefined;
  }

  get loadingForMs(): number {
    const nowMs = this.#host.clock.now();
    return Math.max(0, nowMs - (this.handle.loadingSinceMs ?? nowMs));
  }

  get canSleep(): boolean {
    return this.spec.sleepLevel !== undefined && this.#dialect.sleep !== undefined;
  }

  /** Idempotent. */
  async sleep(): Promise<void> {
    await this.remember(false, "asleep");
    using limit = deadline(this.#host.clock, this.#host.limits.sleepMsMax, "falling asleep", this.#gone.signal);
    await this.#dialect.sleep!(this.handle.endpoint, this.spec.sleepLevel!, limit.signal);
    limit.signal.throwIfAborted();
  }

  /** Idempotent. */
  async wake(signal: AbortSignal): Promise<void> {
    if (!this.#dialect.wake || this.spec.sleepLevel === undefined)
      throw new Error("the engine is asleep, but sleep is not configured");
    using limit = deadline(this.#host.clock, this.#host.limits.wakeMsMax, "waking", signal, this.#gone.signal);
    await this.remember(false, "awake");
    await this.#dialect.wake(this.handle.endpoint, this.spec.sleepLevel, limit.signal);
    limit.signal.throwIfAborted();
  }

  /** Wakes an engine of an earlier agent if that agent was waking it, or if the engine reports that it sleeps. */
  async wakeIfAsleep(signal: AbortSignal): Promise<void> {
    if (this.handle.heading === "awake" || (await this.#isSleeping(signal))) await this.wake(signal);
  }

  async #isSleeping(signal: AbortSignal): Promise<boolean> {
    if (this.spec.sleepLevel === undefined || !this.#dialect.isSleeping) return false;
    const { clock, limits } = this.#host;
    using limit = deadline(clock, limits.warmMsMax, "the engine's answer", signal, this.#gone.signal);
    // Repeated, because a starting engine may not listen yet. Awaited, because `limit` is disposed at return.
    return await untilReady(clock, limits.warmMsMax, limit.signal, (each) =>
      this.#dialect.isSleeping!(this.handle.endpoint, each),
    );
  }

  /** Writes the handle of a new process to disk. An external engine counts as loaded. */
  async rememberStart(): Promise<void> {
    const loads = this.spec.launcher.kind !== "external";
    this.handle = { ...this.handle, loadingSinceMs: loads ? this.#host.clock.now() : undefined };
    await this.#host.handles.write(this.handle);
  }

  /** Writes the handle to disk in its new state, no longer as loading. */
  async remember(asleep: boolean, heading?: "asleep" | "awake"): Promise<void> {
    const asleepSinceMs = asleep ? this.#host.clock.now() : undefined;
    this.handle = { ...this.handle, asleep, heading, asleepSinceMs, loadingSinceMs: undefined };
    await this.#host.handles.write(this.handle);
  }

  async stop(): Promise<void> {
    this.enter("changing");
    this.handle = { ...this.handle, loadingSinceMs: undefined };
    await this.#launcher.stop(this.handle);
    this.unwatch();
    await this.#host.handles.remove(this.handle.slot, this.handle.model);
  }

  lastLines(): Promise<readonly string[]> {
    return this.#launcher.lastLines(this.handle);
  }

  processes(): Promise<readonly number[]> {
    return this.#launcher.processes(this.handle);
  }

  get #launcher(): Launcher {
    return this.#host.launchers[this.spec.launcher.kind];
  }

  get #dialect(): DialectLifecycle {
    return this.#host.dialects[this.spec.dialect];
  }
}
