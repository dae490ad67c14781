/**
 * The simulated host of one slot: engines on virtual time that outlive agents. It knows what is true; the agent knows only
 * what `SimulatedEngines` tells it.
 */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { Random } from "@weiche/shared/testing/random.ts";
import type { EngineEndpoint } from "@weiche/node-agent/src/engines/engine.ts";

type Range = readonly [min: number, max: number];

export interface SimTimes {
  readonly startMs: Range;
  readonly wakeMs: Range;
  readonly stopMs: Range;
  readonly probeMs: Range;
  /** Time from a crash to the news of it. */
  readonly newsMs: Range;
  /** Time from waking to the crash of an engine that crashes. */
  readonly crashMs: Range;
  /** Time from the moment when a later call takes over to the answer of the earlier one. */
  readonly lateMs: Range;
}

/** Chances from 0 to 1. */
export const noFaults = {
  startFails: 0,
  /** The start does nothing until it is told to give up. */
  startHangs: 0,
  /** A start that hangs ignores that it should give up. */
  startIgnoresGiveUp: 0,
  /** A start that should give up succeeds. */
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

/** Has one call at a time: a new call takes over from the one before. */
interface Subject {
  calls: number;
  takeOver: () => void;
}

export interface SimEngine extends Subject {
  readonly model: ModelId;
  readonly sleeps: boolean;
  state: SimEngineState;
  /** The end of a sleep or a wake in progress, which goes on if the agent is killed. */
  heading: "asleep" | "awake" | undefined;
  /** Counts how often it came up. */
  incarnation: number;
  readonly parallelMax?: number;
  endpoint: EngineEndpoint;
  awakeSinceMs: number;
  /** A cold start in progress. It goes on without its agent. */
  loading: Loading | undefined;
}

export interface Loading {
  readonly beganMs: number;
  /** Infinity: it hangs. */
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
   * Whether an engine of the model sleeps instead of being stopped, and how many answers it says that it gives at once;
   * absent: it does not say.
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
  /** Engines started cold or woken. */
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

  /** Puts the engine away at once; a running call about it is overtaken. */
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

  /** Ends all faults: nothing goes wrong any more. */
  heal(): void {
    this.faults = noFaults;
    this.#crash?.cancel();
  }

  /** Never whole milliseconds, so that no engine is done at the very moment of a deadline. */
  time(kind: keyof SimTimes): number {
    const [min, max] = this.times[kind];
    return min + this.random.below(max - min) + 0.5;
  }

  chance(fault: keyof SimFaults): boolean {
    return this.faults[fault] > 0 && this.random.chance(this.faults[fault]);
  }
}
