import { sleep, type Clock } from "@weiche/shared/time/clock.ts";
import { EngineStartError } from "./engine.ts";

interface Deadline extends Disposable {
  /** Aborts at the deadline, or with the reason of the first given signal that aborts. */
  readonly signal: AbortSignal;
}

export function deadline(clock: Clock, ms: number, what: string, ...signals: readonly AbortSignal[]): Deadline {
  const late = new AbortController();
  const timer = clock.after(ms, () => late.abort(new Error(`${what} took longer than ${ms / 1000} s`)));
  return { signal: AbortSignal.any([late.signal, ...signals]), [Symbol.dispose]: () => timer.cancel() };
}

/** The poll interval grows by 10 % per step, so readiness is noticed at most 10 % late. */
const stepMsMin = 50;
const stepMsMax = 500;
const stepGrowth = 1.1;

/** Repeats `ask` until it resolves. When the signal aborts, rejects with its reason and the last error of `ask`. */
export async function untilReady<Facts>(
  clock: Clock,
  askMsMax: number,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Facts>,
): Promise<Facts> {
  let last: unknown;
  for (let stepMs = stepMsMin; ; stepMs = Math.min(stepMs * stepGrowth, stepMsMax)) {
    using limit = deadline(clock, askMsMax, "a probe", signal);
    try {
      signal.throwIfAborted();
      return await ask(limit.signal);
    } catch (error) {
      if (signal.aborted) throw withLast(signal.reason, last);
      last = error;
    }
    await sleep(clock, stepMs, signal).catch(() => {});
  }
}

/** Adds the last error to the reason of a deadline. The exit of an engine needs no addition. */
function withLast(reason: unknown, last: unknown): unknown {
  if (reason instanceof EngineStartError || !(reason instanceof Error) || !(last instanceof Error)) return reason;
  return new Error(`${reason.message}; its last answer: ${last.message}`, { cause: reason });
}
