/** Opens the database and its users: keys, usage, and counts of refused requests. */
import type { Core } from "./core.ts";
import { requireClock } from "./db/clock-difference.ts";
import { openDatabase } from "./db/database.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { createKeyCache } from "./callers/key-cache.ts";
import { readGrants } from "./usage/grants.ts";
import { createRefusals } from "./usage/refusal-counts.ts";
import { UnansweredRequests } from "./usage/requests/unanswered-requests.ts";
import { createUsageLedger } from "./usage/usage-ledger.ts";
import { createVoidDeclarations } from "./usage/void-declarations.ts";

export type Storage = Awaited<ReturnType<typeof openStorage>>;

const flushRefusalsMs = 5_000;

export async function openStorage({ config, clock, log, events, job, catalogue, opened }: Core) {
  const database = opened.use(await openDatabase(config, clock, events));
  // Compares the machine's clock, also in tests on virtual time. The embedded server uses the same clock.
  if (config.databaseUrl !== undefined) await requireClock(database, systemClock);
  if (database.notice) log.info({ show: true }, database.notice);
  const grants = await readGrants(database.pool);
  const ledger = opened.use(
    await createUsageLedger(database, clock, events, {
      grants,
      keepDays: config.usageDays,
      makesEmbeddings: (model) => catalogue.get().get(model)?.category === "embeddings",
    }),
  );
  const voids = opened.use(createVoidDeclarations(ledger, clock, events));
  const keys = opened.use(await createKeyCache(database, clock, events));
  const refusals = createRefusals(database.pool, clock);
  const unanswered = new UnansweredRequests(database.pool, clock);
  const flush = async () => void (await Promise.all([refusals.flush(), unanswered.flush()]));
  opened.use(job("refusals", flushRefusalsMs, flush, { atEnd: true }));
  return { database, grants, ledger, voids, keys, refusals, unanswered };
}
