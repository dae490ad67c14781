/** Makes the pages of a bench: goals and results, a table per scenario, charts, and the table of benchmarks/README.md. Pure. */
import { loadText, machineText, markdownTable, type Machine } from "../../e2e/cluster/measurement.ts";
import { direct, type Sample } from "./campaign.ts";
import { barChart, delayChart, type Bar } from "./charts.ts";
import { addedFirstByte, type GoalResult } from "./goals.ts";
import { mergeBuckets, short, spreadOf, spreadText, type Spread } from "./statistics.ts";

export interface BenchResult {
  readonly date: string;
  readonly machine: Machine;
  readonly cores: { readonly load: number; readonly test: number };
  readonly options: { readonly quick: boolean; readonly rounds: number; readonly seed: number };
  readonly programs: readonly { readonly name: string; readonly what: string; readonly version: string }[];
  readonly missing: readonly { readonly name: string; readonly why: string }[];
  readonly scenarios: readonly { readonly name: string; readonly what: string }[];
  readonly samples: readonly Sample[];
  readonly micro?: Readonly<Record<string, number>>;
  readonly goals: readonly GoalResult[];
}

/** The report warns if other programs keep more cores busy. */
const busyCoresMax = 0.15;

/** The columns of a scenario's table. Columns without a value are omitted. */
const columns: readonly (readonly [metric: string, head: string])[] = [
  ["cpuMicrosPerRequest", "CPU µs/request"],
  ["cpuMicrosPerRequest router", "router"],
  ["cpuMicrosPerRequest database", "database"],
  ["cpuMicrosPerRequest agent", "agent"],
  ["cpuMicrosPerRequest store", "store"],
  ["cpuMicrosPerChunk", "CPU µs/chunk"],
  ["cpuMicrosPerChunk router", "router"],
  ["cpuMicrosPerChunk database", "database"],
  ["cpuMicrosPerChunk agent", "agent"],
  ["cpuMicrosPerChunk store", "store"],
  ["requestsPerSecond", "requests/s"],
  ["chunksPerSecond", "chunks/s"],
  ["firstByteP50Us", "first byte p50 µs"],
  ["firstByteP99Us", "p99"],
  ["gapBeforeP99Us", "gap p99 µs without it"],
  ["gapP99Us", "gap p99 µs"],
  ["goodCut", "cut"],
  ["delayP50Us", "delay p50 µs"],
  ["delayP99Us", "p99"],
  ["streams", "streams"],
  ["streamsPerRouterCore", "per router core (computed)"],
  ["kilobytesPerStream", "KB/stream"],
  ["kilobytesPerStream router", "router"],
  ["kilobytesPerStream agent", "agent"],
  ["missing", "streams missing"],
  ["lost", "lost"],
  ["coreShare", "cores used"],
  ["clientCoreShare", "by the client"],
  ["foreignCores", "foreign cores"],
];

export function reportPage(result: BenchResult): string {
  const { date, machine, cores, options, programs, missing, micro } = result;
  const order = [direct, ...programs.map(({ name }) => name)];
  const load = spreadIn(result.samples, "foreignCores");
  const stolen = spreadIn(result.samples, "stolenShare");
  const scenarios = result.scenarios.flatMap(({ name, what }) => {
    const table = scenarioTable(ofScenario(result, name), order);
    return table ? [`## ${name}: ${what}`, table] : [];
  });
  const microRows = Object.entries(micro ?? {});
  const absent = missing.map(({ name, why }) => `${name}: ${why}`).join("; ");
  return [
    `# Bench of ${date}${options.quick ? " (quick)" : ""}`,
    `${machineText(machine)}. Load client, engine and bench on core ${cores.load}, the program under test alone on core ${cores.test}. ${options.rounds} rounds in random order (seed ${options.seed}); medians, with minimum and maximum.`,
    `Other programs kept ${load ? spreadText(load) : "?"} cores busy meanwhile; the host took ${stolen ? short(stolen.max * 100) : "?"} % at most. ${loadText(machine)}`,
    ...(load && load.median > busyCoresMax ? [busyWarning] : []),
    "## Goals",
    goalsTable(result.goals),
    ...scenarios,
    ...(micro ? ["## Single steps of the hot path", tableText(["step", "CPU µs"], microRows)] : []),
    "## Pictures",
    [...chartsOf(result).keys()].map((file) => `![${file.replace(".svg", "")}](${file})`).join("\n\n"),
    "## Programs",
    tableText(
      ["program", "version", ""],
      programs.map(({ name, version, what }) => [name, version, what]),
    ),
    ...(missing.length > 0 ? [`Not there: ${absent}.`] : []),
    "How to read this: [benchmarks/README.md](../../README.md).",
    "",
  ].join("\n\n");
}

const busyWarning =
  "**This machine was busy with other things: do not quote these numbers.** Chunks that wait are passed on together, which costs less, and delays are the machine's.";

function tableText(...table: Parameters<typeof markdownTable>): string {
  return markdownTable(...table).join("\n");
}

function ofScenario({ samples }: BenchResult, name: string): Sample[] {
  return samples.filter(({ scenario }) => scenario === name);
}

function goalsTable(goals: readonly GoalResult[]): string {
  const rows = goals.map(({ what, sense, goal, unit, reached, isMet }) => {
    if (!reached) return [what, `${sense} ${goal} ${unit}`, "not measured", ""];
    const { median, min, max } = reached;
    const off = sense === "at most" ? median / goal : goal / median;
    const verdict = isMet ? "reached" : `**missed**${Number.isFinite(off) ? ` by a factor of ${short(off)}` : ""}`;
    return [what, `${sense} ${goal} ${unit}`, `${short(median)} ${unit} (${short(min)}–${short(max)})`, verdict];
  });
  return tableText(["what", "goal", "this run", ""], rows);
}

function scenarioTable(samples: readonly Sample[], order: readonly string[]): string | undefined {
  const measured = new Set(samples.map(({ program }) => program));
  const programs = [...new Set([...order, ...measured])].filter((name) => measured.has(name));
  const shown = columns.filter(([metric]) => samples.some(({ values }) => values[metric] !== undefined));
  if (programs.length === 0 || shown.length === 0) return undefined;
  const rows = programs.map((program) => [
    program === direct ? "(client and engine alone)" : program,
    ...shown.map(([metric]) => cell(spreadIn(samples, metric, program))),
  ]);
  return tableText(["", ...shown.map(([, head]) => head)], rows);
}

/** Returns the spread of one program, or of all. */
function spreadIn(samples: readonly Sample[], metric: string, program?: string): Spread | undefined {
  const own = samples.filter((sample) => program === undefined || sample.program === program);
  return spreadOf(own.flatMap(({ values }) => values[metric] ?? []));
}

function cell(spread: Spread | undefined): string {
  if (!spread) return "";
  const { median, min, max, rounds } = spread;
  return rounds === 1 || min === max ? short(median) : spreadText(spread);
}

interface BarPicture {
  readonly file: string;
  readonly title: string;
  readonly scenario: string;
  readonly metric: string;
  /** The processes shown as parts of a bar. */
  readonly roles?: readonly string[];
}

const cpuPerChunk = {
  file: "cpu-per-chunk.svg",
  metric: "cpuMicrosPerChunk",
  roles: ["router", "database", "agent"],
};
const barPictures: readonly BarPicture[] = [
  {
    ...{ ...cpuPerChunk, scenario: "stream-64x10" },
    title: "CPU per streamed chunk, µs: 64 streams, a chunk each 10 ms (less is better)",
  },
  // Replaces the chart before, if it was measured.
  {
    ...{ ...cpuPerChunk, scenario: "stream-256x20" },
    title: "CPU per streamed chunk, µs: 256 streams, a chunk each 20 ms (less is better)",
  },
  {
    ...{ file: "requests-per-second.svg", scenario: "json-64", metric: "requestsPerSecond" },
    title: "JSON requests a second on one core, 64 connections (more is better)",
  },
  {
    ...{ file: "memory-per-stream.svg", scenario: "memory-5000", metric: "kilobytesPerStream" },
    ...{ roles: ["router", "agent"], title: "Memory per idle stream, KB: 5,000 open (less is better)" },
  },
];

/** Programs that are omitted from the charts of delays to keep these readable. */
const withoutDelays = ["weiche-plain", "bare-router", "hops-h2"];

/** Returns the charts as SVG by file name. */
export function chartsOf(result: BenchResult): ReadonlyMap<string, string> {
  const { date, machine } = result;
  const charts = new Map<string, string>();
  for (const { file, title, scenario, metric, roles = [] } of barPictures) {
    const bars = barsOf(ofScenario(result, scenario), metric, roles);
    const note = `${machine.cpu}, ${date}; median, line from minimum to maximum`;
    if (bars.length > 1) charts.set(file, barChart(title, note, bars));
  }
  for (const scenario of ["stream-64x10", "stream-256x20"]) {
    const found = ofScenario(result, scenario).filter(({ delays }) => delays?.length);
    const byProgram = [...Map.groupBy(found, ({ program }) => program)];
    const lines = byProgram
      .filter(([name]) => !withoutDelays.includes(name))
      .map(([label, own]) => ({ label, buckets: mergeBuckets(own.map(({ delays }) => delays!)) }));
    const title = `Delay of a chunk, from engine to client: ${scenario}`;
    const note = `${machine.cpu}, ${date}; all rounds together`;
    if (lines.length > 0) charts.set(`delay-${scenario}.svg`, delayChart(title, note, lines));
  }
  return charts;
}

function barsOf(samples: readonly Sample[], metric: string, roles: readonly string[]): Bar[] {
  const names = [...new Set(samples.map(({ program }) => program))].filter((name) => name !== direct);
  return names.flatMap((label): Bar[] => {
    const spread = spreadIn(samples, metric, label);
    if (!spread) return [];
    const parts = roles.flatMap((role) => {
      const part = spreadIn(samples, `${metric} ${role}`, label);
      return part ? [{ label: role, value: part.median }] : [];
    });
    return [{ label, isOurs: label.startsWith("weiche"), spread, parts: parts.length > 1 ? parts : undefined }];
  });
}

/** The columns of the table in benchmarks/README.md, first what users notice, then the costs. */
const readmeColumns: readonly (readonly [head: string, (result: BenchResult, program: string) => string])[] = [
  ["adds to the first token, µs", (result, name) => shortOr(addedFirstByte(result.samples, name))],
  ["streams of 40 tokens/s a core carries", streamsOfACore],
  ["p99 gap at 20 ms, µs", median("stream-256x20", "gapP99Us")],
  ["CPU µs/chunk", median("stream-256x20", "cpuMicrosPerChunk")],
  ["JSON requests/s", median("json-64", "requestsPerSecond")],
  ["CPU µs/request", median("json-64", "cpuMicrosPerRequest")],
  ["KB/idle stream", median("memory-5000", "kilobytesPerStream")],
];

function median(scenario: string, metric: string) {
  return (result: BenchResult, program: string) => shortOr(spreadIn(ofScenario(result, scenario), metric, program));
}

function shortOr(spread: Spread | undefined): string {
  return spread ? short(spread.median) : "–";
}

/** Weiche's agents run on the GPU servers, so the number in brackets is for a core with router and database only. */
function streamsOfACore(result: BenchResult, program: string): string {
  const found = (metric: string) => shortOr(spreadIn(ofScenario(result, "most-streams"), metric, program));
  const streams = found("streams");
  return program === "weiche" && streams !== "–"
    ? `${streams} (router alone: ${found("streamsPerRouterCore")})`
    : streams;
}

/** Returns the table of benchmarks/README.md, with Weiche first. */
export function readmeTable(result: BenchResult): string {
  const { programs, date, machine } = result;
  const shown = programs.filter(({ name }) => !["weiche-plain", "weiche-store", "bare-router"].includes(name));
  const rows = shown.map(({ name, version }) => [
    name === "weiche" ? "**Weiche**: router, agent, TLS between" : `${name} ${version}`,
    ...readmeColumns.map(([, cellOf]) => cellOf(result, name)),
  ]);
  return [
    ...markdownTable(["one core, loopback", ...readmeColumns.map(([head]) => head)], rows),
    "",
    `${date}, ${machine.cpu}, commit ${machine.commit}; \`npm run bench\` measures it again. What each of them does:`,
    "",
    ...shown.map(({ name, what }) => `- **${name}**: ${what}`),
    "",
  ].join("\n");
}
