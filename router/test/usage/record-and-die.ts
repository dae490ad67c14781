/** A router that is killed between the commit of a batch and its acknowledgement. It reads the records from stdin. */
import { json } from "node:stream/consumers";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import type { UsageQueueEvents } from "../../src/usage/usage-queue.ts";
import { openDatabase } from "../../src/db/database.ts";
import { silent } from "../db/prepared-database.ts";
import { grantedNode, grants } from "./usage-records.ts";

const database = await openDatabase({ stateDir: "/nowhere", databaseUrl: process.argv[2]! }, systemClock, silent);
const events: UsageQueueEvents = {
  usageCommitted: () => process.kill(process.pid, "SIGKILL"),
  usageCommitFailed: (error) => console.log("failed", error),
  usageSetAside: (_node, reason) => console.log("refused", reason),
};
const ledger = await createUsageLedger(database, systemClock, events, { grants });
const records = (await json(process.stdin)) as (Omit<UsageRecord, "factor"> & { factor: string })[];
await ledger.record(
  grantedNode,
  records.map((record) => ({ ...record, factor: millicredits(BigInt(record.factor)) })),
);
console.log("acknowledged");
