/**
 * The simulated host of one slot. Its engines run on virtual time and survive agents. It knows the true state, while
 * the agent knows only what `SimulatedEngines` reports.
 */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { Random } from "@weiche/shared/random.ts";
import type { EngineEndpoint } from "@weiche/node-agent/src/engines/engine.ts";

type Range = readonly [min: number, max: number];

export interface SimTimes {
  readonly startMs: Range;
  readonly wakeMs: Range;
  readonly stopMs: Range;
  readonly probeMs: Range;
  /** Time from a crash to its report. */
  readonly newsMs: Range;
  /** Time from the wake to the crash of an engine that crashes. */
  readonly crashMs: Range;
  /** Time from a later call to the answer of the call that it replaced. */
  readonly lateMs: Range;
}

/** Chances from 0 to 1. */
export const noFaults = {
  startFails: 0,
  /** The start does nothing until it is given up. */
  startHangs: 0,
  /** A hanging start ignores that it was given up. */
  startIgnoresGiveUp: 0,
  /** A start that was given up succeeds. */
  startComesUpLate: 0,
  stopFails: 0,
  stopHangs: 0,
  readoptFails: 0,
  readoptHangs: 0,
  crashes: 0,
};
export type SimFaults = Readonly<typeof noFaults>;

/** `starting`, `awake` and `stopping` hold GPU memory. */
type SimEngineState = "gone" | "starting" | "awake" | "stopping" | "asleep";

/** Has one call at a time. A new call replaces the previous one. */
interface Subject {
  calls: number;
  takeOver: () => void;
}

export interface SimEngine extends Subject {
  readonly model: ModelId;
  readonly sleeps: boolean;
  state: SimEngineState;
  /** The goal of a sleep or wake in progress, which continues if the agent is killed. */
  heading: "asleep" | "awake" | undefined;
  /** Number of times that the engine came up. */
  incarnation: number;
  readonly parallelMax?: number;
  endpoint: EngineEndpoint;
  awakeSinceMs: number;
  /** A cold start in progress. It continues without its agent. */
  loading: Loading | undefined;
}

export interface Loading {
  readonly beganMs: number;
  /** Infinity if it hangs. */
  readonly endsMs: number;
  readonly fails: boolean;
}

const nothing = {
  state: "gone" as SimEngineState,
  heading: undefined,
  incarnation: 0,
  endpoint: { origin: "" },
  awakeSinceMs: 0,
  loading: undefined,
  calls: 0,
  takeOver: () => {},
};

interface SimHostOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly times: SimTimes;
  readonly faults: SimFaults;
  /**
   * Whether an engine of the model sleeps instead of being stopped, and the number of simultaneous answers that it
   * reports. Undefined if it reports none.
   */
  readonly models: ReadonlyMap<ModelId, { readonly sleeps: boolean; readonly parallelMax?: number }>;
}

export class SimulatedHost implements Subject {
  calls = 0;
  takeOver: () => void = () => {};
  readonly clock: Clock;
  readonly random: Random;
  readonly times: SimTimes;
  faults: SimFaults;
  readonly engines: ReadonlyMap<ModelId, SimEngine>;
  /** Called at each crash. */
  onCrash: (engine: SimEngine) => void = () => {};
  /** Number of engines started cold or woken. */
  activations = 0;
  coldStarts = 0;
  #crash: Timer | undefined;

  constructor({ clock, random, times, faults, models }: SimHostOptions) {
    this.clock = clock;
    this.random = random;
    this.times = times;
    this.faults = faults;
    this.engines = new Map([...models].map(([model, one]) => [model, { ...nothing, model, ...one }]));
  }

  get occupants(): readonly SimEngine[] {
    return [...this.engines.values()].filter(({ state }) => state !== "gone" && state !== "asleep");
  }

  comesUp(engine: SimEngine): void {
    this.activations++;
    if (engine.heading !== "awake") this.coldStarts++;
    engine.heading = undefined;
    engine.loading = undefined;
    engine.state = "awake";
    engine.incarnation++;
    engine.awakeSinceMs = this.clock.monotonicMs();
    const { model, incarnation, parallelMax } = engine;
    engine.endpoint = { origin: `http://${model}.${incarnation}`, parallelMax };
    if (!this.random.chance(this.faults.crashes)) return;
    this.#crash = this.clock.after(this.time("crashMs"), () => {
      if (engine.incarnation === incarnation && engine.state === "awake") this.crash(engine);
    });
  }

  crash(engine: SimEngine): void {
    engine.state = "gone";
    this.onCrash(engine);
  }

  /** Puts the engine away at once, and replaces a running call about it. */
  putAway(engine: SimEngine): void {
    this.#takeFrom(engine);
    engine.loading = undefined;
    engine.state = "gone";
  }

  /** Completes a sleep or a wake that an earlier agent began. */
  bringHome(engine: SimEngine): void {
    this.#takeFrom(engine);
    if (engine.heading === "awake") return this.comesUp(engine);
    engine.heading = undefined;
    engine.state = "asleep";
  }

  #takeFrom(engine: SimEngine): void {
    engine.calls++;
    engine.takeOver();
  }

  /** Ends all faults. */
  heal(): void {
    this.faults = noFaults;
    this.#crash?.cancel();
  }

  /** Never returns whole milliseconds, so that no engine finishes exactly at a deadline. */
  time(kind: keyof SimTimes): number {
    const [min, max] = this.times[kind];
    return min + this.random.below(max - min) + 0.5;
  }

  chance(fault: keyof SimFaults): boolean {
    return this.faults[fault] > 0 && this.random.chance(this.faults[fault]);
  }
}
