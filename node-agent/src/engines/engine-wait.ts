/** Waiting for engines: until one is ready, and never longer than allowed. */
import { sleep, type Clock } from "@weiche/shared/time/clock.ts";
import { EngineStartError } from "./engine.ts";

export interface Deadline extends Disposable {
  /** Aborts when the time is over, or when one of the given signals does, with that one's reason. */
  readonly signal: AbortSignal;
}

export function deadline(clock: Clock, ms: number, what: string, ...signals: readonly AbortSignal[]): Deadline {
  const late = new AbortController();
  const timer = clock.after(ms, () => late.abort(new Error(`${what} took longer than ${ms / 1000} s`)));
  return { signal: AbortSignal.any([late.signal, ...signals]), [Symbol.dispose]: () => timer.cancel() };
}

/** Steps grow by a tenth, so that an engine is found ready at most a tenth later than it was. */
const stepMsMin = 50;
const stepMsMax = 500;
const stepGrowth = 1.1;

/** Asks again and again until `ask` resolves. Rejects when the signal aborts, with its reason and why `ask` last failed. */
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

/** An exit says enough; of a deadline one wants to know what it waited for. */
function withLast(reason: unknown, last: unknown): unknown {
  if (reason instanceof EngineStartError || !(reason instanceof Error) || !(last instanceof Error)) return reason;
  return new Error(`${reason.message}; its last answer: ${last.message}`, { cause: reason });
}
