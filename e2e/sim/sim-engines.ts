/**
 * Simulates a slot's engines behind the real contract, as one agent sees them. They start and stop in their own time,
 * fail, hang, start too late, exit, and answer calls that were given up. The object ends with its agent, but its work
 * continues at the host. It notifies the rules before each call and of every answer.
 */
import type { Timer } from "@weiche/shared/time/clock.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type {
  EngineEndpoint,
  ExitReport,
  FoundEngine,
  Sleeper,
  SlotEngines,
  SwitchPhase,
} from "@weiche/node-agent/src/engines/engine.ts";
import type { EngineRules } from "./engine-rules.ts";
import type { Loading, SimEngine, SimulatedHost } from "./sim-host.ts";

type OnPhase = (phase: SwitchPhase) => void;
type Found = FoundEngine | undefined;

/** A call that has not been answered. */
interface Job {
  /** Does `step` after `ms`, instead of the planned step. */
  then(ms: number, step: () => void): void;
  /** Does `step` when faults are healed. */
  onHeal(step: () => void): void;
  /** Answers the call unless the agent is gone. `tell` informs the rules. */
  settle(outcome: unknown, tell?: () => void): void;
  readonly settled: boolean;
}

export class SimulatedEngines implements SlotEngines {
  readonly #host: SimulatedHost;
  readonly #rules: EngineRules;
  readonly #heals: (() => void)[] = [];
  #onExit: (model: ModelId, report: ExitReport) => void = () => {};
  #attached = true;

  constructor(host: SimulatedHost, rules: EngineRules) {
    this.#host = host;
    this.#rules = rules;
    host.onCrash = (engine) => this.#crashed(engine);
  }

  /** Detaches a killed agent, which gets no further answers. */
  detach(): void {
    this.#attached = false;
  }

  /** Ends all calls that hang. */
  heal(): void {
    for (const heal of this.#heals.splice(0)) heal();
  }

  activate(model: ModelId, signal: AbortSignal, onPhase: OnPhase): Promise<EngineEndpoint> {
    const host = this.#host;
    const engine = host.engines.get(model)!;
    this.#rules.activating(engine);
    const loading = engine.loading ?? this.#plan(engine);
    engine.heading = engine.state === "asleep" ? "awake" : undefined;
    engine.loading = engine.heading ? undefined : loading;
    engine.state = "starting";
    onPhase("start");
    const [job, answer] = this.#begin<EngineEndpoint>(engine, new Error("put away"));
    const comeUp = () => {
      host.comesUp(engine);
      job.settle(engine.endpoint, () => this.#rules.ready(engine));
    };
    const cleanUp = () => {
      this.#endLoading(engine);
      job.then(host.time("stopMs"), () => {
        engine.state = "gone";
        engine.loading = undefined;
        job.settle(new Error("did not start"), () => this.#rules.notStarted(engine));
      });
    };
    const hangs = loading.endsMs === Infinity;
    const stubborn = hangs && host.chance("startIgnoresGiveUp");
    if (hangs) job.onHeal(cleanUp);
    else job.then(Math.max(0, loading.endsMs - host.clock.monotonicMs()), loading.fails ? cleanUp : comeUp);
    const giveUp = () => {
      if (job.settled) return;
      this.#rules.gaveUp(engine);
      if (host.chance("startComesUpLate")) job.then(host.time("probeMs"), comeUp);
      else if (!stubborn) cleanUp();
    };
    signal.addEventListener("abort", giveUp, { once: true });
    return answer;
  }

  retire(model: ModelId, onPhase: OnPhase, forGood = false): Promise<void> {
    const host = this.#host;
    const engine = host.engines.get(model)!;
    const before = engine.state;
    this.#rules.retiring(engine);
    onPhase("stop");
    const after = engine.sleeps && !forGood && (before === "awake" || before === "asleep") ? "asleep" : "gone";
    if (before !== "gone" && before !== "asleep") {
      engine.state = "stopping";
      engine.heading = after === "asleep" ? after : undefined;
      this.#endLoading(engine);
    }
    const [job, answer] = this.#begin<void>(engine, undefined);
    const putAway = () => {
      engine.state = after;
      engine.heading = undefined;
      engine.loading = undefined;
      onPhase("memory");
      job.settle(undefined, () => this.#rules.retired());
    };
    const stopMs = host.time("stopMs");
    if (host.chance("stopHangs")) {
      job.onHeal(putAway);
      // Some end at last, after their caller has tried again or before it does.
      if (host.random.chance(0.5)) job.then(stopMs * 21, putAway);
    } else if (host.chance("stopFails")) {
      job.then(stopMs, () => {
        engine.state = before;
        job.settle(new Error("did not stop"), () => this.#rules.failed());
      });
    } else job.then(stopMs, putAway);
    return answer;
  }

  readopt(): Promise<Found> {
    const host = this.#host;
    this.#rules.readopting();
    const [job, answer] = this.#begin<Found>(undefined, new Error("asked again"));
    const look = () => {
      for (const one of host.occupants) if (one.state !== "awake" && one.heading) host.bringHome(one);
      const up = host.occupants.filter(({ state, loading }) => state === "awake" || loading);
      const [engine] = up.length === 1 ? up : [];
      for (const other of host.occupants) if (other !== engine) host.putAway(other);
      if (!engine) return job.settle(undefined, () => this.#rules.foundNothing());
      const { model, endpoint, loading } = engine;
      if (!loading) return job.settle({ model, endpoint }, () => this.#rules.ready(engine));
      const found = { model, loadingForMs: host.clock.monotonicMs() - loading.beganMs };
      job.settle(found, () => this.#rules.foundLoading(engine));
    };
    const probeMs = host.time("probeMs");
    if (host.chance("readoptHangs")) job.onHeal(look);
    else if (host.chance("readoptFails"))
      job.then(probeMs, () => job.settle(new Error("cannot look"), () => this.#rules.failed()));
    else job.then(probeMs, look);
    return answer;
  }

  onExit(callback: (model: ModelId, report: ExitReport) => void): void {
    this.#onExit = callback;
  }

  stopAll(): Promise<void> {
    for (const engine of this.#host.engines.values()) this.#host.putAway(engine);
    return Promise.resolve();
  }

  sleepers(): readonly Sleeper[] {
    const asleep = [...this.#host.engines.values()].filter(({ state }) => state === "asleep");
    return asleep.map(({ model }) => ({ model }));
  }

  #plan({ state }: SimEngine): Loading {
    const host = this.#host;
    const beganMs = host.clock.monotonicMs();
    const hangs = host.chance("startHangs");
    const endsMs = hangs ? Infinity : beganMs + host.time(state === "asleep" ? "wakeMs" : "startMs");
    return { beganMs, endsMs, fails: host.chance("startFails") };
  }

  /** Ends a loading process, so that a next agent sees the start fail. */
  #endLoading(engine: SimEngine): void {
    if (engine.loading) engine.loading = { ...engine.loading, endsMs: this.#host.clock.monotonicMs(), fails: true };
  }

  #crashed(engine: SimEngine): void {
    const { incarnation, calls } = engine;
    this.#host.clock.after(this.#host.time("newsMs"), () => {
      // Does not report an engine that was put away or started again meanwhile.
      if (!this.#attached || engine.incarnation !== incarnation || engine.calls !== calls) return;
      this.#rules.exitTold(engine);
      this.#onExit(engine.model, { reason: "signal SIGSEGV", output: "" });
    });
  }

  /**
   * Begins a call. A later call about the same engine replaces it: its plan is dropped, and `superseded` is its late
   * answer.
   */
  #begin<T>(engine: SimEngine | undefined, superseded: T | Error): readonly [Job, Promise<T>] {
    const host = this.#host;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const subject = engine ?? host;
    const call = ++subject.calls;
    let timer: Timer | undefined;
    let settled = false;
    const answer = (outcome: unknown, tell?: () => void) => {
      settled = true;
      timer?.cancel();
      if (!this.#attached) return;
      tell?.();
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome as T);
    };
    subject.takeOver();
    subject.takeOver = () => {
      timer?.cancel();
      if (!settled) timer = host.clock.after(host.time("lateMs"), () => answer(superseded));
    };
    const job: Job = {
      then(ms, step) {
        if (subject.calls !== call || settled) return;
        timer?.cancel();
        timer = host.clock.after(ms, step);
      },
      onHeal: (step) => this.#heals.push(() => subject.calls === call && !settled && step()),
      settle: answer,
      get settled() {
        return settled;
      },
    };
    return [job, promise];
  }
}
