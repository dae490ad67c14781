/** Opens the database and its users: keys, usage, and counts of refused requests. */
import type { Core } from "./core.ts";
import { openDatabase, type Database } from "./db/database.ts";
import { createKeyCache, type OpenKeyCache } from "./keys/key-cache.ts";
import { readGrants, type Grants } from "./usage/grants.ts";
import { createRefusals, type Refusals } from "./usage/refusal-counts.ts";
import { createUsageLedger, type UsageLedger } from "./usage/usage-ledger.ts";
import { VoidDeclarations } from "./usage/void-declarations.ts";

export interface Storage {
  readonly database: Database;
  readonly grants: Grants;
  readonly ledger: UsageLedger;
  readonly voids: VoidDeclarations;
  readonly keys: OpenKeyCache;
  readonly refusals: Refusals;
}

const flushRefusalsMs = 5_000;

export async function openStorage({ config, clock, log, events, job, catalogue, opened }: Core): Promise<Storage> {
  const database = opened.use(await openDatabase(config, clock, events));
  if (database.notice) log.info({ show: true }, database.notice);
  const grants = await readGrants(database.pool);
  const ledger = opened.use(
    await createUsageLedger(database, clock, events, {
      grants,
      keepDays: config.usageDays,
      makesEmbeddings: (model) => catalogue.get().get(model)?.category === "embeddings",
    }),
  );
  const voids = opened.use(new VoidDeclarations(ledger, clock));
  const keys = opened.use(await createKeyCache(database, clock, events));
  const refusals = createRefusals(database.pool, clock);
  opened.use(job("refusals", flushRefusalsMs, () => refusals.flush(), { atEnd: true }));
  return { database, grants, ledger, voids, keys, refusals };
}
