/** Runs one slot under a load on virtual time. Refused clients come back. */
import { standings } from "@weiche/node-agent/src/slots/turn-estimate.ts";
import type { ModelId } from "@weiche/shared/ids.ts";
import type { RefusalKind } from "@weiche/node-agent/src/slots/slot-state.ts";
import { EventQueue } from "@weiche/router/src/simulate/engine/event-queue.ts";
import { TimedSlot } from "@weiche/router/src/simulate/engine/timed-slot.ts";
import { policySlot, type Arrival, type PolicyOptions } from "./arrival.ts";

export interface RunOptions extends PolicyOptions {
  /** In order of time. */
  readonly load: readonly Arrival[];
}

/** How a request ended. */
interface Outcome {
  readonly model: ModelId;
  readonly atMs: number;
  /** Time from the first attempt to the admission. Undefined if the client gave up. */
  readonly waitedMs: number | undefined;
}

/** The wait of an attempt, and the slot's estimate of it at the attempt's arrival. */
export interface Estimate {
  readonly estimatedMs: number;
  readonly waitedMs: number;
}

export interface RunResult {
  /** The estimates of the admitted attempts. */
  readonly estimates: readonly Estimate[];
  readonly outcomes: readonly Outcome[];
  readonly refusals: Readonly<Partial<Record<RefusalKind, number>>>;
  readonly switches: number;
}

/** A client tries again after these seconds, or after `retry-after` if that is later, and then gives up. */
export const retrySeconds = [1, 2, 4, 8, 8, 8] as const;

/** Repeats a request until it is admitted or gives up. `refused` gets the result of each failed attempt. */
export type Attempt = (arrival: Arrival, on: Pick<AttemptEnds, "admitted" | "refused">) => void;

interface AttemptEnds {
  admitted(): void;
  refused(refusal: RefusalKind, retryAfterMs: number): void;
}

export function runPolicy(options: RunOptions): RunResult {
  const clock = new EventQueue();
  const slot = new TimedSlot(policySlot(options), clock);
  const estimates: Estimate[] = [];
  const result = serveLoad(options.load, clock, (arrival, on) => {
    const askedAtMs = clock.monotonicMs();
    let estimatedMs: number | undefined;
    const { model, account, promptTokens, completionTokens } = arrival;
    slot.ask({
      ...{ model, account, inputTokens: promptTokens, outputTokens: completionTokens, router: 0 },
      refused: on.refused,
      waits: (ticket) => {
        estimatedMs = standings(slot.slot, clock.monotonicMs(), [model]).get(ticket)!.estimateMs;
      },
      ended: () => {},
      admitted: () => {
        if (estimatedMs !== undefined) estimates.push({ estimatedMs, waitedMs: clock.monotonicMs() - askedAtMs });
        on.admitted();
      },
    });
  });
  return { ...result, estimates, switches: slot.times.starts };
}

/** Sends each request of the load at its time, and again after refusals, until all have ended or `untilMs`. */
export function serveLoad(
  load: readonly Arrival[],
  clock: EventQueue,
  attempt: Attempt,
  untilMs = Infinity,
): Pick<RunResult, "outcomes" | "refusals"> {
  const outcomes: Outcome[] = [];
  const refusals: Partial<Record<RefusalKind, number>> = {};
  const ask = (arrival: Arrival, attempts: number): void => {
    const { model, atMs } = arrival;
    attempt(arrival, {
      admitted: () => outcomes.push({ model, atMs, waitedMs: clock.monotonicMs() - atMs }),
      refused: (refusal, retryAfterMs) => {
        refusals[refusal] = (refusals[refusal] ?? 0) + 1;
        const seconds = retrySeconds[attempts];
        if (seconds === undefined) return void outcomes.push({ model, atMs, waitedMs: undefined });
        clock.after(Math.max(1_000 * seconds, retryAfterMs), () => ask(arrival, attempts + 1));
      },
    });
  };
  const rest = load[Symbol.iterator]();
  const next = () => {
    const { value, done } = rest.next();
    if (done) return;
    clock.after(value.atMs - clock.monotonicMs(), () => {
      next();
      ask(value, 0);
    });
  };
  next();
  while (outcomes.length < load.length && clock.step(untilMs));
  return { outcomes, refusals };
}
