/**
 * Measures scenarios that need several loads: a search, the memory of idle streams, and requests beside many open
 * streams.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Program, RunningProgram } from "../peers/program.ts";
import { attempt, mayHold, onCoreOfItsOwn, startProgram } from "./campaign.ts";
import type { Campaign, Sample, Started } from "./campaign.ts";
import { loadOn, measure, valuesOf, type Bench } from "./measure.ts";
import { runLoad } from "./native/run-load.ts";
import { memoryBytesOf } from "../../e2e/cluster/processes.ts";
import { shuffled } from "./statistics.ts";

const gapMsMax = 40;
/** 40 tokens a second. */
const pacingUs = 25_000;
/** A quarter of the streams that a router with an agent can open on a quiet core. */
const openedPerSecond = 400;
/** A stream whose second token arrives after ten minutes. */
const idle = { stream: true, tokens: 2, itl: 600_000_000 } as const;

/** Searches for the most streams of 40 tokens a second with a p99 gap below 40 ms and no lost stream. */
export async function mostStreams(campaign: Campaign, { program, running }: Started, round: number): Promise<Sample> {
  const { bench, say, quick } = campaign;
  let routerShare = 1;
  const holds = async (connections: number) => {
    const wish = { stream: true, connections, itl: pacingUs, tokens: 1_000, ramp: 1, warmup: 1 };
    const values = valuesOf(await measure(bench, running, { ...wish, seconds: quick ? 2 : 4 }));
    const isEnough = (values["chunksPerSecond"] ?? 0) > 0.95 * ((connections * 1e6) / pacingUs);
    const gapMs = (values["gapP99Us"] ?? 0) / 1_000;
    say(`${program.name}: ${connections} streams, p99 gap ${gapMs} ms, lost ${values["lost"]}`);
    const isGood = isEnough && values["gapP99Us"]! < gapMsMax * 1_000 && values["lost"] === 0;
    if (isGood) routerShare = shareOfRouter(values);
    return isGood;
  };
  const streams = await onCoreOfItsOwn(bench, running, () => search(holds, 100, 8_000));
  const values = { streams, streamsPerRouterCore: streams / routerShare };
  return { scenario: "most-streams", program: program.name, round, values };
}

/** Returns the share of router and database in the processor time, or 1 for programs without an agent. */
function shareOfRouter(values: Readonly<Record<string, number>>): number {
  const all = values["cpuMicrosPerChunk"]!;
  return (all - (values["cpuMicrosPerChunk agent"] ?? 0)) / all;
}

/** Finds the largest count that holds by doubling, then halving. Exact to a tenth. Returns 0 if `from` does not hold. */
export async function search(holds: (count: number) => Promise<boolean>, from: number, max: number): Promise<number> {
  let good = 0;
  let bad = max;
  for (let count = from; count < max; count *= 2) {
    if (!(await holds(count))) {
      bad = count;
      break;
    }
    good = count;
  }
  while (good > 0 && bad - good > good / 10) {
    const middle = (good + bad) >> 1;
    if (await holds(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

/** Measures the memory per silent stream of a newly started program. */
export async function memoryPerStream(
  { bench, say }: Campaign,
  program: Program,
  streams: number,
  round: number,
): Promise<Sample> {
  await using running = await startProgram(bench, program);
  return await onCoreOfItsOwn(bench, running, async () => {
    await measure(bench, running, { connections: 64, tokens: 8, seconds: 3 });
    await measure(bench, running, { connections: 64, stream: true, tokens: 50, seconds: 2 });
    const before = memoryBytesOf(running.processes);
    const look = async () => memoryBytesOf(running.processes);
    const { open, found: after } = await besideOpen(bench, running, streams, look);
    const each = (role: string) => (after[role]! - before[role]!) / Math.max(1, open) / 1_024;
    const roles = Object.keys(after).map((role) => [`kilobytesPerStream ${role}`, each(role)] as const);
    const sum = roles.reduce((total, [, kilobytes]) => total + kilobytes, 0);
    say(`${program.name}: ${sum.toFixed(1)} KB per stream at ${streams}`);
    const values = { kilobytesPerStream: sum, ...Object.fromEntries(roles), lost: streams - open };
    return { scenario: `memory-${streams}`, program: program.name, round, values };
  });
}

const besideStreams = 6_000;
/** Several measurements per opening, because opening thousands of streams takes far longer than a measurement. */
const asksPerOpening = 3;

/** Measures every program in each round, in random order. */
export async function jsonBesideRounds(campaign: Campaign, started: readonly Started[]): Promise<Sample[]> {
  const samples: Sample[] = [];
  const chosen = started.filter(({ program }) => mayHold(campaign, program, besideStreams));
  for (let round = 1; round <= Math.min(3, campaign.rounds); round++)
    for (const one of shuffled(chosen, campaign.random))
      await attempt(campaign, one.program.name, async () => {
        samples.push(...(await jsonBeside(campaign, one, round)));
      });
  return samples;
}

/** Measures JSON requests with and without 6,000 silent streams. Each `round` counts as three. */
async function jsonBeside(campaign: Campaign, { program, running }: Started, round: number): Promise<Sample[]> {
  const { bench, say, quick } = campaign;
  const load = { connections: 16, tokens: 8, warmup: 1, seconds: quick ? 2 : 4 };
  const ask = async () => {
    const asked: Readonly<Record<string, number>>[] = [];
    while (asked.length < asksPerOpening) asked.push(valuesOf(await measure(bench, running, load)));
    return asked;
  };
  return await onCoreOfItsOwn(bench, running, async () => {
    const alone = await ask();
    const { open, found } = await besideOpen(bench, running, besideStreams, ask);
    const micros = (asked: typeof found) => asked.map((values) => values["cpuMicrosPerRequest"]?.toFixed(0)).join(", ");
    say(`${program.name}: JSON ${micros(alone)} µs alone, ${micros(found)} µs beside ${open}`);
    const of = (n: number) => ({ program: program.name, round: (round - 1) * asksPerOpening + n + 1 });
    const missing = besideStreams - open;
    const beside = found.map((values, n) => {
      return { ...of(n), scenario: `json-beside-${besideStreams}`, values: { ...values, missing } };
    });
    return [...alone.map((values, n) => ({ ...of(n), scenario: "json-beside-0", values })), ...beside];
  });
}

/** Opens streams, does the work, and then ends the client. */
async function besideOpen<T>(bench: Bench, program: RunningProgram, streams: number, work: () => Promise<T>) {
  const done = new AbortController();
  const wish = { ...idle, connections: streams, ramp: streams / openedPerSecond, seconds: 3_600, stall: 3_600 };
  const holding = runLoad(bench.natives, bench.cores.load, loadOn(program, wish), {}, done.signal).catch(() => {});
  try {
    const open = await untilOpen(bench, streams);
    return { open, found: await work() };
  } finally {
    done.abort();
    await holding;
    await untilOpen(bench, 0);
  }
}

/** Waits until the engine runs this number of streams, at most 30 s longer than opening takes. Returns their number. */
async function untilOpen({ engine }: Bench, streams: number): Promise<number> {
  const deadlineMs = performance.now() + (streams / openedPerSecond + 30) * 1_000;
  for (;;) {
    const state = await fetch(`http://127.0.0.1:${engine.port}/load/state`);
    const { running } = (await state.json()) as { running: number };
    if (streams === 0 ? running === 0 : running >= streams) return running;
    if (performance.now() > deadlineMs) return running;
    await sleep(200);
  }
}
