/**
 * `node benchmarks/telemetry/fork-cost.ts [seconds] [rounds]`: measures how children that one thread starts slow down
 * another thread of the process. The main thread writes to its memory and measures how long a turn takes, while the
 * other thread does nothing, keeps a processor busy, or runs `true`, the latter two ten times a second.
 */
import { execSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { quantiles } from "../../e2e/cluster/measurement.ts";

const everyMs = 100;
const busyMs = 5;
const pageBytes = 4_096;
const modes = ["nothing", "busy", "children"] as const;
type Mode = (typeof modes)[number];

if (isMainThread) await compare(Number(process.argv[2] ?? 5), Number(process.argv[3] ?? 3));
else setInterval(() => disturb(workerData as Mode), everyMs);

function disturb(mode: Mode): void {
  if (mode === "children") return void execSync("true");
  const untilMs = performance.now() + busyMs;
  while (performance.now() < untilMs);
}

async function compare(seconds: number, rounds: number): Promise<void> {
  const blocks = Array.from({ length: 100 }, () => Buffer.alloc(1 << 20, 1));
  for (let round = 0; round < rounds; round++)
    for (const mode of modes) {
      const thread = mode === "nothing" ? undefined : new Worker(new URL(import.meta.url), { workerData: mode });
      await sleep(500);
      console.log(mode, JSON.stringify(await turns(blocks, seconds)));
      await thread?.terminate();
    }
}

/** Microseconds of a turn, apart from the time in which other programs had the processor, and page faults per second. */
async function turns(blocks: readonly Buffer[], seconds: number) {
  const micros: number[] = [];
  const faultsBefore = pageFaults();
  const untilMs = performance.now() + seconds * 1_000;
  for (let page = 0; performance.now() < untilMs; await sleep(1)) {
    const [beganMs, beganWaitedMs] = [performance.now(), waitedMs()];
    for (let n = 0; n < 64; n++, page++) {
      const block = blocks[page % blocks.length]!;
      const at = (page * pageBytes) % block.length;
      block[at] = block[at]! + 1;
    }
    micros.push((performance.now() - beganMs - (waitedMs() - beganWaitedMs)) * 1_000);
  }
  return { micros: quantiles(micros), faultsPerSecond: Math.round((pageFaults() - faultsBefore) / seconds) };
}

/** Page faults of the main thread that needed no disk access. */
function pageFaults(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/stat`, "utf8").split(") ")[1]!.split(" ")[7]);
}

function waitedMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}
