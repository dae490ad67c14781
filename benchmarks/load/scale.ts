/**
 * Scale of one router: many open streams through two agents for minutes. Each stream is one long answer; at the end every
 * one of them must be whole, and the memory of router and agents must come back.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describeMachine, resultsOf } from "../cluster/result.ts";
import { startWeiche } from "../peers/weiche.ts";
import { measure, valuesOf, type Measured } from "./measure.ts";
import { compileNatives } from "./native/compile.ts";
import { startEngine } from "./native/run-load.ts";
import { chooseCores, descriptorsFor, memoryBytesOf, pin, raiseDescriptors } from "./processes.ts";
import { short } from "./statistics.ts";

export interface ScaleOptions {
  readonly streams: number;
  readonly minutes: number;
}

/** A token each two seconds: a stream that thinks slowly, as ten thousand of them on a few GPUs would. */
const itlSeconds = 2;
const openedPerSecond = 500;
/** How long memory may take to come back: Node.js collects when it is idle, but not at once. */
const restSecondsMax = 300;
/** It is back when a process keeps no more than this part of what the streams took, or so little that it says nothing. */
const keptShareMax = 0.2;
const keptBytesMax = 16 << 20;

type Memory = Readonly<Record<string, number>>;

export async function runScale(options: ScaleOptions, say: (line: string) => void): Promise<void> {
  const { streams, minutes } = options;
  const machine = describeMachine();
  const descriptors = raiseDescriptors();
  const needed = descriptorsFor(streams, 1);
  if (descriptors < needed)
    throw new Error(
      `${streams} streams need ${needed} file descriptors per process; here are ${descriptors} (ulimit -n)`,
    );
  const cores = chooseCores();
  const natives = compileNatives();
  const directory = mkdtempSync(join(tmpdir(), "weiche-scale-"));
  chmodSync(directory, 0o711);
  try {
    await using engine = await startEngine(natives, cores.load);
    const whole = { tls: true, agents: 2, requestSeconds: 60 * minutes + 600 };
    await using weiche = await startWeiche({ port: engine.port, model: "load", directory }, whole);
    pin(weiche.processes, cores.test);
    const bench = { natives, cores, engine };
    await measure(bench, weiche, { connections: 64, tokens: 8, seconds: 3 });
    await measure(bench, weiche, { connections: 64, stream: true, tokens: 100, seconds: 3 });
    const before = memoryBytesOf(weiche.processes);
    const ramp = streams / openedPerSecond;
    const tokens = Math.ceil((60 * minutes) / itlSeconds) + Math.ceil(ramp / itlSeconds);
    say(`${streams} streams of ${tokens} tokens, one each ${itlSeconds} s, ${minutes} minutes`);
    let open: Memory = {};
    const looking = setInterval(() => (open = most(open, memoryBytesOf(weiche.processes))), 10_000);
    const wish = { stream: true, connections: streams, tokens, itl: itlSeconds * 1e6, each: 1, ramp };
    const measured = await measure(bench, weiche, {
      ...wish,
      seconds: 60 * minutes - 1,
      drain: 2 * ramp + 60,
      stall: 120,
    });
    clearInterval(looking);
    const { after, restSeconds } = await untilBack(weiche.processes, before, open);
    write(scalePage(options, machine, measured, { before, open, after, restSeconds }), {
      options,
      machine,
      values: valuesOf(measured),
      endings: measured.result.endings,
      before,
      open,
      after,
      restSeconds,
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function untilBack(
  processes: Readonly<Record<string, number>>,
  before: Memory,
  open: Memory,
): Promise<{ readonly after: Memory; readonly restSeconds: number }> {
  for (let restSeconds = 5; ; restSeconds += 5) {
    await sleep(5_000);
    const after = memoryBytesOf(processes);
    const isBack = (role: string) =>
      after[role]! - before[role]! <= Math.max(keptBytesMax, keptShareMax * (open[role]! - before[role]!));
    if (restSeconds >= restSecondsMax || Object.keys(before).every(isBack)) return { after, restSeconds };
  }
}

function most(a: Memory, b: Memory): Memory {
  return Object.fromEntries(Object.entries(b).map(([role, bytes]) => [role, Math.max(bytes, a[role] ?? 0)]));
}

function scalePage(
  { streams, minutes }: ScaleOptions,
  machine: ReturnType<typeof describeMachine>,
  { result, cpuSeconds, foreignCores }: Measured,
  memory: { readonly before: Memory; readonly open: Memory; readonly after: Memory; readonly restSeconds: number },
): string {
  const { whole, ...others } = result.endings;
  const lost = Object.entries(others).filter(([, count]) => count > 0);
  const mega = (bytes: number | undefined) => short((bytes ?? 0) / 2 ** 20);
  const rows = Object.keys(memory.before).map((role) => {
    const kilobytes = ((memory.open[role] ?? 0) - memory.before[role]!) / streams / 1_024;
    const cores = (cpuSeconds[role] ?? 0) / result.seconds;
    return `| ${role} | ${mega(memory.before[role])} | ${mega(memory.open[role])} | ${mega(memory.after[role])} | ${short(kilobytes)} | ${short(cores)} |`;
  });
  return [
    `# ${streams} open streams through two agents for ${minutes} minutes`,
    `${machine.cores} cores of ${machine.cpu}, Node.js ${machine.node}, commit ${machine.commit}; ${short(foreignCores)} cores were busy with other programs. Router, database and both agents share one core; TLS between them; a token each ${itlSeconds} s for each stream.`,
    `- **${whole} of ${streams} answers whole${lost.length === 0 ? ", none lost" : `; ${lost.map(([ending, count]) => `${count} ${ending}`).join(", ")}`}**`,
    `- gap between two tokens: p50 ${short((result.gapUs.p50 ?? 0) / 1_000)} ms, p99 ${short((result.gapUs.p99 ?? 0) / 1_000)} ms, longest ${short((result.gapUs.max ?? 0) / 1_000)} ms (the engine's: ${itlSeconds * 1_000} ms)`,
    `- delay of a token: p50 ${short((result.delayUs.p50 ?? 0) / 1_000)} ms, p99 ${short((result.delayUs.p99 ?? 0) / 1_000)} ms`,
    `| | MiB before | MiB open (most) | MiB ${memory.restSeconds} s after | KB/stream | cores |\n|---|---|---|---|---|---|\n${rows.join("\n")}`,
    "",
  ].join("\n\n");
}

function write(page: string, numbers: object): void {
  const directory = resultsOf(Temporal.Now.plainDateISO().toString());
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "scale.md"), page);
  writeFileSync(join(directory, "scale.json"), `${JSON.stringify(numbers, null, 1)}\n`);
  console.log(`\n${page}\n${directory}`);
}
