/** The things that all parts of the router share: configuration, clock, log, metrics, events and jobs. */
import { uuidv7 } from "@weiche/shared/ids.ts";
import { FewLines } from "@weiche/shared/program/few-lines.ts";
import { createLog, type Log } from "@weiche/shared/program/log.ts";
import { LogLevelSwitch } from "@weiche/shared/program/log-level.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { createJobs, type StartJob } from "@weiche/shared/time/job.ts";
import type { RouterConfig } from "./config/config.ts";
import { LiveCatalogue } from "./config/live-catalogue.ts";
import { createEvents, createJobEvents, type JobRuns, type RouterEvents } from "./events.ts";
import type { JobName } from "./job-names.ts";
import { MemoryLimiter } from "./limits/memory-limiter.ts";
import { createMetrics, type Metrics } from "./metrics.ts";

/** Dependencies that a test may replace. */
export interface Given {
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
}

export interface Core extends Given {
  readonly config: RouterConfig;
  readonly routerId: string;
  readonly metrics: Metrics;
  readonly events: RouterEvents;
  readonly job: StartJob<JobName>;
  readonly jobRuns: JobRuns;
  readonly logLevel: LogLevelSwitch;
  /** `isLeaving`: the router stops. Requests that still arrive are answered, and their connections then closed. */
  readonly life: { isLeaving: boolean };
  /** Counts the requests of this router, also if the limit store decides on them. */
  readonly ownLimiter: MemoryLimiter;
  readonly catalogue: LiveCatalogue;
  /** Each part adds everything that it opens. A stop closes these in reverse order. */
  readonly opened: AsyncDisposableStack;
}

export function createCore(config: RouterConfig, given: Partial<Given>, opened: AsyncDisposableStack): Core {
  const { clock = systemClock, random = Math.random, log = createLog("router", config.logLevel) } = given;
  const ownLimiter = new MemoryLimiter(clock);
  const metrics = createMetrics(() => ownLimiter.running);
  const events = createEvents(log, metrics, opened.use(new FewLines(clock)));
  const jobRuns: JobRuns = new Map();
  const job = createJobs(clock, random, createJobEvents(log, metrics, clock, jobRuns));
  const catalogue = new LiveCatalogue(config.catalogueFile, clock);
  const logLevel = opened.use(new LogLevelSwitch(log, clock));
  return {
    config,
    clock,
    random,
    log,
    logLevel,
    routerId: uuidv7(clock),
    metrics,
    events,
    job,
    jobRuns,
    life: { isLeaving: false },
    ownLimiter,
    catalogue,
    opened,
  };
}
