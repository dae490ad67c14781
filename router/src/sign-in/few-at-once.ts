/**
 * Limits how much expensive work runs at once; the rest waits. Known people and strangers take turns, and within each
 * group the networks do: any number of strangers gets at most every second place, and each network equally many.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { FairLine } from "./fair-line.ts";

export interface Asker {
  /** Networks take turns. */
  readonly network: string;
  /** Has authenticated before: from this network, in a session, or with a link that was sent to them. */
  readonly isKnown: boolean;
}

export interface FewAtOnceLimits {
  readonly atOnceMax: number;
  /** Among known people, and again among strangers. */
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

export interface FewAtOnce {
  /** Rejects with `refusal()` if too many wait, or after `waitMsMax`. */
  run<T>(asker: Asker, work: () => Promise<T>): Promise<T>;
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: () => void;
}

export function fewAtOnce(limits: FewAtOnceLimits, clock: Clock, refusal: () => Error): FewAtOnce {
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

  function wait({ network, isKnown }: Asker): Promise<void> {
    const line = isKnown ? known : strangers;
    if (line.size >= limits.waitingMax) {
      const refused = line.takeExcess(network);
      if (!refused) throw refusal();
      refused.refuse();
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        start: () => (deadline.cancel(), resolve()),
        refuse: () => (deadline.cancel(), reject(refusal())),
      };
      const deadline = clock.after(limits.waitMsMax, () => {
        if (line.remove(network, waiting)) waiting.refuse();
      });
      line.add(network, waiting);
    });
  }

  return {
    async run(asker, work) {
      if (running < limits.atOnceMax) running++;
      else await wait(asker);
      try {
        return await work();
      } finally {
        // The place goes to the next in line directly, so that no newcomer takes it.
        const following = next();
        if (following) following.start();
        else running--;
      }
    },
  };
}
