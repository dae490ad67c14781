/** Periodic work with a name. Operators see when it last succeeded and why it failed. */
import type { Clock, Timer } from "./clock.ts";

/** A program lists the names of its jobs, so that the compiler reports a new job without a log text or metric. */
export interface JobEvents<Name extends string = string> {
  jobRan(name: Name): void;
  /** A run has failed. The next run follows after the usual pause. */
  jobFailed(name: Name, error: unknown): void;
}

interface JobOptions {
  /** Run at once, not only after the first pause. */
  readonly atStart?: boolean;
  /** Run once more when the job is stopped. */
  readonly atEnd?: boolean;
}

/**
 * Runs `work` repeatedly, `everyMs` after the end of the previous run. The pause varies by up to a tenth, so that
 * processes do not run in step. Disposing stops the job and waits for a current run.
 */
export type StartJob<Name extends string = string> = (
  name: Name,
  everyMs: number,
  work: () => void | Promise<unknown>,
  options?: JobOptions,
) => AsyncDisposable;

/** `random` is in [0, 1). */
export function createJobs<Name extends string>(
  clock: Clock,
  random: () => number,
  events: JobEvents<Name>,
): StartJob<Name> {
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
