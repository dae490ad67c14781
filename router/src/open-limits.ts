/** Opens the limits of accounts, which this router counts alone or shares with other routers in a store. */
import type { Core } from "./core.ts";
import { peaksEveryMs, storePeaks } from "./limits/limit-peaks.ts";
import type { LimitStoreView } from "./limits/limit-store.ts";
import type { Limiter } from "./limits/limiter.ts";
import { SharedLimiter } from "./limits/shared-limiter.ts";
import { ValkeyStore } from "./limits/valkey-store.ts";
import type { Storage } from "./open-storage.ts";

export interface Limits {
  readonly limiter: Limiter;
  /** If undefined, each router counts alone. */
  readonly store?: LimitStoreView;
}

/** Opens the limiter, and stores the highest use of accounts. `others` returns the number of other routers. */
export async function openLimits(core: Core, { database }: Storage, others: () => number): Promise<Limits> {
  const limits = await openLimiter(core, others);
  const { clock, ownLimiter: own, opened, job } = core;
  const store = () => storePeaks(database.pool, clock, own, limits.limiter);
  opened.use(job("limit-peaks", peaksEveryMs, store, { atEnd: true }));
  return limits;
}

async function openLimiter(core: Core, others: () => number): Promise<Limits> {
  const { config, clock, random, routerId, events, ownLimiter: own, opened } = core;
  if (!config.limitStore) return { limiter: own };
  const { shown: address, whenDown } = config.limitStore;
  const store = new ValkeyStore({ config: config.limitStore, routerId, clock, random });
  const routers = () => others() + 1;
  const limiter = opened.use(await SharedLimiter.open({ store, own, clock, events, whenDown, routers }));
  const down = () => {
    const { alone } = limiter;
    return alone && { sinceMs: clock.now() - (clock.monotonicMs() - alone.sinceMs), reason: alone.reason };
  };
  return { limiter, store: { address, down } };
}
