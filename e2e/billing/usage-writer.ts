/**
 * Runs a router's ledger in a separate process for `usage-writers.ts`. Its nodes send batches of 200 new records, each after
 * the acknowledgement of the previous batch. Every twentieth record also goes to another writer in another order, as when a
 * node repeats unacknowledged records.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "@weiche/router/src/db/database.ts";
import { readGrants } from "@weiche/router/src/usage/grants.ts";
import { createUsageLedger } from "@weiche/router/src/usage/usage-ledger.ts";
import type { UsageQueueEvents } from "@weiche/router/src/usage/usage-queue.ts";
import { creditsOf } from "@weiche/shared/credits.ts";
import { asId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { silent } from "@weiche/router/test/db/prepared-database.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { makeUsageRecord } from "../cluster/usage-source.ts";

/** The numbers of records that one writer sent and saw committed. `committed` includes repetitions. */
export interface WriterTally {
  made: number;
  credits: bigint;
  copied: number;
  committed: number;
  repeated: number;
  failures: string[];
}

export type FromWriter =
  | { readonly kind: "ready" | "made" }
  | { readonly kind: "copies"; readonly node: NodeId; readonly records: readonly UsageRecord[] }
  | { readonly kind: "tally"; readonly tally: WriterTally };

/** `copies`: records of another writer. `end`: no more copies follow. */
export type ToWriter =
  | { readonly kind: "begin"; readonly seconds: number; readonly recordsPerSecond: number }
  | Extract<FromWriter, { readonly kind: "copies" }>
  | { readonly kind: "end" };

const nodes = 5;
const batchRecords = 200;
const copiedEach = 20;

const [databaseUrl, index] = process.argv.slice(2) as [string, string];
const random = createRandom(Number(index) + 1);
const tally: WriterTally = { made: 0, credits: 0n, copied: 0, committed: 0, repeated: 0, failures: [] };
const begun = Promise.withResolvers<Extract<ToWriter, { readonly kind: "begin" }>>();
const ended = Promise.withResolvers<void>();
const copies: Promise<void>[] = [];

const events: UsageQueueEvents = {
  usageCommitted({ records, repeated }) {
    tally.committed += records;
    tally.repeated += repeated;
  },
  usageCommitFailed: (error) => void tally.failures.push(String(error)),
  usageSetAside: (_node, reason) => void tally.failures.push(reason),
};

{
  await using database = await openDatabase({ stateDir: "", databaseUrl }, systemClock, silent);
  const grants = await readGrants(database.pool);
  await using ledger = await createUsageLedger(database, systemClock, events, { grants });
  process.on("message", (message: ToWriter) => {
    if (message.kind === "begin") begun.resolve(message);
    else if (message.kind === "end") ended.resolve();
    else copies.push(ledger.record(message.node, message.records));
  });
  tell({ kind: "ready" });

  const { seconds, recordsPerSecond } = await begun.promise;
  const pauseMs = (batchRecords * nodes * 1_000) / recordsPerSecond;
  const endMs = performance.now() + seconds * 1_000;
  await Promise.all(
    Array.from({ length: nodes }, async (_, n) => {
      const node: NodeId = asId(`node-${index}-${n}`);
      let dueMs = performance.now() + (pauseMs * n) / nodes;
      for (; performance.now() < endMs; dueMs += pauseMs) {
        await sleep(Math.max(0, dueMs - performance.now()));
        const batch = Array.from({ length: batchRecords }, () => makeUsageRecord(node, grants, random));
        const copied = batch.filter((_record, at) => at % copiedEach === 0).toReversed();
        tell({ kind: "copies", node, records: copied });
        tally.made += batch.length;
        tally.copied += copied.length;
        for (const record of batch)
          tally.credits += creditsOf(record.promptTokens, record.completionTokens, record.factor);
        await ledger.record(node, batch);
      }
    }),
  );
  tell({ kind: "made" });
  await ended.promise;
  await Promise.all(copies);
}
tell({ kind: "tally", tally });
process.disconnect!();

function tell(message: FromWriter): void {
  process.send!(message);
}
