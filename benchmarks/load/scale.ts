/**
 * Measures how routers scale with many open streams through two agents for minutes. Each stream is one long answer. At the
 * end every answer must be whole, and routers and agents must return their memory.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describeMachine, machineText, markdownTable, today } from "../../e2e/cluster/measurement.ts";
import { resultsOf, writePage } from "./result-files.ts";
import type { Machine } from "../../e2e/cluster/measurement.ts";
import { startWeiche } from "../peers/weiche.ts";
import { measure, openBench, valuesOf, type Measured } from "./measure.ts";
import { descriptorsFor, memoryBytesOf, pin, raiseDescriptors } from "../../e2e/cluster/processes.ts";
import { startEngine } from "./native/run-load.ts";
import { short } from "./statistics.ts";

export interface ScaleOptions {
  readonly streams: number;
  readonly minutes: number;
  /** The number of routers. They share one database and the streams. */
  readonly routers: number;
  /** The time between two tokens of a stream. Slow, as with ten thousand streams on a few GPUs. */
  readonly gapSeconds: number;
}

interface Scale {
  readonly machine: Machine;
  readonly measured: Measured;
  readonly memory: {
    readonly before: Memory;
    readonly open: Memory;
    readonly after: Memory;
    readonly restSeconds: number;
  };
}

const openedPerSecond = 500;
/** How long programs may take to return memory. An idle Node.js does not collect garbage at once. */
const restSecondsMax = 300;
/** A process has returned memory if it keeps less than this share of the streams' memory, or less than 16 MiB. */
const keptShareMax = 0.2;
const keptBytesMax = 16 << 20;

type Memory = Readonly<Record<string, number>>;

/** Runs the measurement and writes its page. */
export async function runScale(options: ScaleOptions, say: (line: string) => void): Promise<void> {
  const scale = await measureScale(options, say);
  const { machine, measured, memory } = scale;
  const name = options.routers === 1 ? "scale" : `scale-${options.routers}-routers`;
  writePage(resultsOf(today()), {
    [`${name}.md`]: scalePage(options, scale),
    [`${name}.json`]: { options, machine, values: valuesOf(measured), endings: measured.result.endings, ...memory },
  });
}

export async function measureScale(options: ScaleOptions, say: (line: string) => void): Promise<Scale> {
  const { streams, minutes, routers, gapSeconds } = options;
  const machine = describeMachine();
  const descriptors = raiseDescriptors();
  const needed = descriptorsFor(streams, 1);
  if (descriptors < needed)
    throw new Error(
      `${streams} streams need ${needed} file descriptors per process; here are ${descriptors} (ulimit -n)`,
    );
  await using opened = new AsyncDisposableStack();
  const bench = await openBench(opened);
  // Linux searches long for a free port if two addresses share 14,000 connections, so each agent has its own engine.
  const { port } = opened.use(await startEngine(bench.natives, bench.cores.load));
  const upstream = { port: bench.engine.port, otherPorts: [port], model: "load", directory: bench.directory };
  const longest = { tls: true, agents: 2, routers, requestSeconds: 60 * minutes + 600 };
  const weiche = opened.use(await startWeiche(upstream, longest));
  pin(weiche.processes, bench.cores.test);
  await measure(bench, weiche, { connections: 64, tokens: 8, seconds: 3 });
  await measure(bench, weiche, { connections: 64, stream: true, tokens: 100, seconds: 3 });
  const before = memoryBytesOf(weiche.processes);
  const ramp = streams / openedPerSecond;
  const tokens = Math.ceil((60 * minutes) / gapSeconds) + Math.ceil(ramp / gapSeconds);
  say(`${streams} streams of ${tokens} tokens, one each ${gapSeconds} s, ${minutes} minutes`);
  let open: Memory = {};
  const looking = setInterval(() => (open = most(open, memoryBytesOf(weiche.processes))), 10_000);
  const wish = { stream: true, connections: streams, tokens, itl: gapSeconds * 1e6, each: 1, ramp };
  const bounds = { seconds: 60 * minutes - 1, drain: 2 * ramp + 60, stall: 120 };
  const measured = await measure(bench, weiche, { ...wish, ...bounds });
  clearInterval(looking);
  return { machine, measured, memory: { before, open, ...(await untilBack(weiche.processes, before, open)) } };
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
  { streams, minutes, routers, gapSeconds }: ScaleOptions,
  { machine, measured, memory }: Scale,
): string {
  const { result, cpuSeconds, foreignCores } = measured;
  const { whole, ...others } = result.endings;
  const lost = Object.entries(others).filter(([, count]) => count > 0);
  const mega = (bytes = 0) => short(bytes / 2 ** 20);
  const ms = (us = 0) => `${short(us / 1_000)} ms`;
  const rows = Object.keys(memory.before).map((role) => {
    const kilobytes = ((memory.open[role] ?? 0) - memory.before[role]!) / streams / 1_024;
    const megabytes = [memory.before, memory.open, memory.after].map((each) => mega(each[role]));
    return [role, ...megabytes, short(kilobytes), short((cpuSeconds[role] ?? 0) / result.seconds)];
  });
  const heads = ["", "MiB before", "MiB open (most)", `MiB ${memory.restSeconds} s after`, "KB/stream", "cores"];
  const { gapUs, delayUs } = result;
  return [
    `# ${streams} open streams through ${routers === 1 ? "" : `${routers} routers and `}two agents for ${minutes} minutes`,
    `${machineText(machine)}; ${short(foreignCores)} cores were busy with other programs. ${routers === 1 ? "Router" : "Routers"}, database and both agents share one core; TLS between them; a token each ${gapSeconds} s for each stream.`,
    `- **${whole} of ${streams} answers whole${lost.length === 0 ? ", none lost" : `; ${lost.map(([ending, count]) => `${count} ${ending}`).join(", ")}`}**`,
    `- gap between two tokens: p50 ${ms(gapUs.p50)}, p99 ${ms(gapUs.p99)}, longest ${ms(gapUs.max)} (the engine's: ${gapSeconds * 1_000} ms)`,
    `- delay of a token: p50 ${ms(delayUs.p50)}, p99 ${ms(delayUs.p99)}`,
    markdownTable(heads, rows).join("\n"),
    "",
  ].join("\n\n");
}
