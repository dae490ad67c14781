/**
 * Measures how many usage records per second the ledger commits to the embedded database, and how long it occupies the event
 * loop (`npm run bench:usage [records]`). Prints one line of JSON. As in production, several nodes send batches of up to 200
 * records and wait for each acknowledgement, and 2 % of the records are sent twice. Records are made in small steps, so that
 * only the ledger causes lag. `loopBusyMs` excludes other programs of the machine.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createGrants } from "@weiche/router/src/usage/grants.ts";
import { createUsageLedger } from "@weiche/router/src/usage/usage-ledger.ts";
import type { UsageQueueEvents } from "@weiche/router/src/usage/usage-queue.ts";
import { openDatabase } from "@weiche/router/src/db/database.ts";
import { silent } from "@weiche/router/test/db/prepared-database.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { quantiles, round } from "../e2e/cluster/measurement.ts";
import { insertUsageAccounts, makeUsageRecord } from "../e2e/cluster/usage-source.ts";

const recordsCount = Number(process.argv[2] ?? 150_000);
const nodes = 16;
const batchRecords = 200;
const random = createRandom(1);

await using opened = new AsyncDisposableStack(); // ends the database server even if this program fails
const stateDir = mkdtempSync(join(tmpdir(), "weiche-bench-"));
opened.defer(() => rmSync(stateDir, { recursive: true, force: true }));
const database = opened.use(await openDatabase({ stateDir }, systemClock, silent));
const batches: { records: number; repeated: number; durationMs: number }[] = [];
const events: UsageQueueEvents = {
  usageCommitted: (batch) => void batches.push(batch),
  usageCommitFailed: (error) => console.error(error),
  usageSetAside: (_node, reason) => console.error(reason),
};
const grants = createGrants(randomBytes(32));
const ledger = opened.use(await createUsageLedger(database, systemClock, events, { grants }));
await insertUsageAccounts(database.pool);

await send(20_000); // so that V8 compiles the code
batches.length = 0;
const lag = monitorEventLoopDelay({ resolution: 1 });
const cpu = process.cpuUsage();
const busy = watchBusy();
lag.enable();
const elapsedMs = await send(recordsCount);
lag.disable();
const busyMs = busy();
const { user, system } = process.cpuUsage(cpu);

const committed = batches.reduce((sum, { records, repeated }) => sum + records - repeated, 0);
const { rows } = await database.pool.query<{ equal: boolean }>(
  "select (select sum(credits) from usage_records) = (select sum(credits) from usage_totals where scope = 'account') as equal",
);
console.log(
  JSON.stringify({
    recordsPerSecond: Math.round((committed / elapsedMs) * 1000),
    recordsPerBatch: Math.round(committed / batches.length),
    batchMs: quantiles(batches.map(({ durationMs }) => durationMs)),
    loopBusyMs: quantiles(busyMs),
    loopLagMs: { p99: round(lag.percentile(99) / 1e6), max: round(lag.max / 1e6) },
    cpuMicrosPerRecord: round((user + system) / committed),
    sumsEqual: rows[0]!.equal,
  }),
);

/**
 * Measures how long the event loop works between two timers of a millisecond, as CPU time of its thread, so that other
 * programs do not count. The returned function stops the measurement and returns all times.
 */
function watchBusy(): () => number[] {
  const spells: number[] = [];
  const workedMs = () => {
    const { user: u, system: s } = process.threadCpuUsage();
    return (u + s) / 1000;
  };
  let before = workedMs();
  const timer = setInterval(() => {
    const now = workedMs();
    spells.push(now - before);
    before = now;
  }, 1);
  return () => {
    clearInterval(timer);
    return spells;
  };
}

/** Lets every node send batches in turn until `count` records are sent. Returns the milliseconds that this took. */
async function send(count: number): Promise<number> {
  const startMs = performance.now();
  let left = count;
  await Promise.all(
    Array.from({ length: nodes }, async (_, node) => {
      for (; left > 0; left -= batchRecords) {
        await new Promise((resolve) => setImmediate(resolve));
        await ledger.record(asId(`node-${node}`), makeBatch(asId(`node-${node}`)));
      }
    }),
  );
  return performance.now() - startMs;
}

function makeBatch(node: NodeId): UsageRecord[] {
  let last: UsageRecord | undefined;
  return Array.from({ length: batchRecords }, () =>
    last && random.chance(0.02) ? last : (last = makeUsageRecord(node, grants, random)),
  );
}
