/** Periodic work with a name, so that operators see when it last ended well and what it failed at. */
import type { Clock, Timer } from "./clock.ts";

export interface JobEvents {
  /** A run has ended without an error. */
  jobRan(name: string): void;
  /** The next run comes in its turn. */
  jobFailed(name: string, error: unknown): void;
}

export interface JobOptions {
  /** The first run is now, not after the first pause. */
  readonly atStart?: boolean;
  /** Once more when the job is stopped. */
  readonly atEnd?: boolean;
}

/**
 * Runs `work` again and again, `everyMs` after the run before has ended, give or take a tenth, so that processes that were
 * started together drift apart. Disposing stops it and waits for a run that goes on.
 */
export type StartJob = (
  name: string,
  everyMs: number,
  work: () => void | Promise<unknown>,
  options?: JobOptions,
) => AsyncDisposable;

/** `random` is in [0, 1). */
export function createJobs(clock: Clock, random: () => number, events: JobEvents): StartJob {
  return (name, everyMs, work, { atStart, atEnd } = {}) => {
    let running: Promise<void> = Promise.resolve();
    let timer: Timer | undefined;
    let isStopped = false;

    function begin(): void {
      running = run().then(pause);
    }

    function pause(): void {
      if (!isStopped) timer = clock.after(everyMs * (0.9 + 0.2 * random()), begin);
    }

    async function run(): Promise<void> {
      try {
        await work();
        events.jobRan(name);
      } catch (error) {
        events.jobFailed(name, error);
      }
    }

    if (atStart) begin();
    else pause();
    return {
      async [Symbol.asyncDispose]() {
        isStopped = true;
        timer?.cancel();
        await running;
        if (atEnd) await run();
      },
    };
  };
}
