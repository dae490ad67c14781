/**
 * Limits how much expensive work runs at once; the rest waits. Known people and strangers take turns, and the networks
 * within each group take turns. So any number of strangers gets at most every second place, and networks get equally
 * many.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { networkOf } from "../edge/client-network.ts";
import { FairLine } from "./fair-line.ts";

export interface Asker {
  /** Network address. Networks take turns. */
  readonly source: string;
  /** True if the person has authenticated before: from this network, in a session, or with a one-time link. */
  readonly isKnown: boolean;
}

interface FewAtOnceLimits {
  readonly atOnceMax: number;
  /** Separate for known people and strangers. */
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: () => void;
}

/** Returns a function that runs `work`. It rejects with `overloaded` if too many wait, or after `waitMsMax`. */
export function fewAtOnce(limits: FewAtOnceLimits, clock: Clock) {
  const known = new FairLine<Waiting>();
  const strangers = new FairLine<Waiting>();
  let isStrangersTurn = false;
  let running = 0;

  function next(): Waiting | undefined {
    const inTurn = isStrangersTurn ? [strangers, known] : [known, strangers];
    const line = inTurn.find(({ size }) => size > 0);
    isStrangersTurn = line === known;
    return line?.take();
  }

  function wait({ source, isKnown }: Asker): Promise<void> {
    const network = networkOf(source);
    const line = isKnown ? known : strangers;
    if (line.size >= limits.waitingMax) {
      const refused = line.takeExcess(network);
      if (!refused) throw overloaded();
      refused.refuse();
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        start: () => (deadline.cancel(), resolve()),
        refuse: () => (deadline.cancel(), reject(overloaded())),
      };
      const deadline = clock.after(limits.waitMsMax, () => {
        if (line.remove(network, waiting)) waiting.refuse();
      });
      line.add(network, waiting);
    });
  }

  return async <T>(asker: Asker, work: () => Promise<T>): Promise<T> => {
    if (running < limits.atOnceMax) running++;
    else await wait(asker);
    try {
      return await work();
    } finally {
      // The next waiter gets the place directly, so that no new request takes it.
      const following = next();
      if (following) following.start();
      else running--;
    }
  };
}

function overloaded(): ApiError {
  return new ApiError("overloaded", "Too many people are signing in at the same time.", { retryAfterSeconds: 10 });
}
