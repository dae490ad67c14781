/** The dependencies that all parts of the agent share. */
import { uuidv7, type ModelId } from "@weiche/shared/ids.ts";
import { createLog, type Log } from "@weiche/shared/program/log.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { createJobs, type StartJob } from "@weiche/shared/time/job.ts";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import type { AgentConfig } from "./config/config.ts";
import { createGpuReader, type GpuReader } from "./host/gpu.ts";
import { createJobEvents } from "./metrics/link-events.ts";
import { lookupAll, type Resolve } from "./links/router-addresses.ts";
import { createMetrics, type Metrics } from "./metrics/metrics.ts";

/** Dependencies that tests may replace. */
export interface AgentOptions {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly resolve: Resolve;
  readonly gpuReader: GpuReader;
  /** If false, the agent measures nothing of its machine that placement does not need. */
  readonly measuresMachine: boolean;
}

export interface Core extends AgentOptions {
  readonly config: AgentConfig;
  readonly bootId: string;
  /** The models of all slots. */
  readonly models: ReadonlySet<ModelId>;
  /** This clock stops while the event loop is blocked, so that silence during that time does not count. */
  readonly loopClock: Clock;
  readonly metrics: Metrics;
  readonly job: StartJob;
  /** `ready`: whether requests may be admitted. */
  readonly life: { ready: boolean };
  /** Resources that the parts have opened. They close in reverse order. */
  readonly opened: AsyncDisposableStack;
}

export function createCore(config: AgentConfig, options: Partial<AgentOptions>, opened: AsyncDisposableStack): Core {
  const { clock = systemClock, random = Math.random, log = createLog("node-agent", config.logLevel) } = options;
  const { resolve = lookupAll, gpuReader = createGpuReader({ clock }), measuresMachine = true } = options;
  const metrics = createMetrics();
  return {
    ...{ config, clock, random, log, resolve, gpuReader, measuresMachine, metrics, opened },
    bootId: uuidv7(clock),
    models: new Set(config.slots.flatMap(({ engines }) => engines.map(({ model }) => model))),
    loopClock: opened.use(new LoopClock(clock)),
    job: createJobs(clock, random, createJobEvents(log, metrics, clock)),
    life: { ready: false },
  };
}
