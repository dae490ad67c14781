/**
 * A process that survives a full disk, in a directory on its own small file system, and prints its observations as
 * JSON: `node outbox-full-disk-process.ts DIRECTORY`.
 */
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openOutboxDirectory } from "../../src/outbox/outbox-disk.ts";
import { openOutbox } from "../../src/outbox/outbox.ts";
import { eventsInWords } from "./outbox-steps.ts";
import { numberOf, usageRecord } from "./usage-records.ts";

const root = process.argv[2]!;
const heard: string[] = [];
const events = eventsInWords((text) => heard.push(text));
const limits = { segmentBytesMax: 32 << 10, reserveBytes: 64 << 10, freeBytesMin: 64 << 10, keepMs: 3_600_000 };
const open = async () => openOutbox(await openOutboxDirectory(join(root, "outbox")), systemClock, events, limits);

const outbox = await open();
let count = 0;
for (; count < 100; count++) await outbox.append(usageRecord(count));
const before = outbox.admitting;

// Another program fills the disk to the last block.
const { bavail, bsize } = statfsSync(root);
writeFileSync(join(root, "ballast"), Buffer.alloc(bavail * bsize));
const closedMs = await untilAdmitting(false);
for (; count < 300; count++) await outbox.append(usageRecord(count));
const stillClosed = !outbox.admitting;

rmSync(join(root, "ballast"));
const openedMs = await untilAdmitting(true);
for (; count < 400; count++) await outbox.append(usageRecord(count));
await outbox[Symbol.asyncDispose]();

const again = await open();
const found = new Set((await again.read(1_000_000)).records.map(({ record }) => numberOf(record)));
await again[Symbol.asyncDispose]();
const missing = Array.from({ length: count }, (_, number) => number).filter((number) => !found.has(number));
console.log(JSON.stringify({ before, closedMs, stillClosed, openedMs, missing, heard }));

async function untilAdmitting(wanted: boolean): Promise<number> {
  const startMs = performance.now();
  while (outbox.admitting !== wanted && performance.now() - startMs < 20_000)
    await new Promise((resolve) => systemClock.after(5, () => resolve(undefined)));
  return performance.now() - startMs;
}
