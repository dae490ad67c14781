/**
 * A process that only appends to an outbox, several records at a time, and prints the number of each record whose
 * append has resolved. For tests that kill it: `node outbox-writer-process.ts DIRECTORY FIRST-NUMBER [RESERVE-BYTES]`.
 */
import { writeSync } from "node:fs";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openOutboxDirectory } from "../../src/outbox/outbox-disk.ts";
import { openOutbox } from "../../src/outbox/outbox.ts";
import { eventsInWords } from "./outbox-steps.ts";
import { usageRecord } from "./usage-records.ts";

const [directory, first, reserveBytes] = process.argv.slice(2) as [string, string, string | undefined];
const say = (text: string) => writeSync(1, `${text}\n`);
const outbox = await openOutbox(await openOutboxDirectory(directory), systemClock, eventsInWords(say), {
  ...{ segmentBytesMax: 64 << 10, reserveBytes: Number(reserveBytes ?? 65_536) },
  ...{ freeBytesMin: 65_536, keepMs: 3_600_000 },
});
say("open");
let next = Number(first);
for (let lane = 0; lane < 8; lane++) void appendForEver();

async function appendForEver(): Promise<void> {
  for (;;) {
    const number = next++;
    await outbox.append(usageRecord(number));
    say(String(number));
    if (!outbox.admitting) await new Promise((resolve) => systemClock.after(20, () => resolve(undefined)));
  }
}
