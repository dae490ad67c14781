/** The pages of a bench: goals beside what was reached, a table for each scenario, pictures, and rows for the README. Pure. */
import type { Machine } from "../cluster/result.ts";
import { direct, type Sample } from "./campaign.ts";
import { barChart, delayChart, type Bar } from "./charts.ts";
import type { GoalResult } from "./goals.ts";
import { mergeBuckets, short, spreadOf, type Spread } from "./statistics.ts";

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

/** Cores that others may keep busy before the report warns. */
const busyCoresMax = 0.15;

/** Columns of a scenario's table, where any of its samples has them. */
const columns: readonly (readonly [metric: string, head: string])[] = [
  ["cpuMicrosPerRequest", "CPU µs/request"],
  ["cpuMicrosPerRequest router", "router"],
  ["cpuMicrosPerRequest database", "database"],
  ["cpuMicrosPerRequest agent", "agent"],
  ["cpuMicrosPerChunk", "CPU µs/chunk"],
  ["cpuMicrosPerChunk router", "router"],
  ["cpuMicrosPerChunk database", "database"],
  ["cpuMicrosPerChunk agent", "agent"],
  ["requestsPerSecond", "requests/s"],
  ["chunksPerSecond", "chunks/s"],
  ["firstByteP50Us", "first byte p50 µs"],
  ["firstByteP99Us", "p99"],
  ["gapP99Us", "gap p99 µs"],
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
  const { date, machine, cores, options, programs, missing } = result;
  const order = [direct, ...programs.map(({ name }) => name)];
  const load = spreadOf(result.samples.flatMap(({ values }) => values["foreignCores"] ?? []));
  const stolen = spreadOf(result.samples.flatMap(({ values }) => values["stolenShare"] ?? []));
  return [
    `# Bench of ${date}${options.quick ? " (quick)" : ""}`,
    `${machine.cores} cores of ${machine.cpu}, ${machine.memoryGiB} GiB, Node.js ${machine.node}, commit ${machine.commit}. Load client, engine and bench on core ${cores.load}, the program under test alone on core ${cores.test}. ${options.rounds} rounds in random order (seed ${options.seed}); medians, with minimum and maximum.`,
    `Other programs kept ${load ? `${short(load.median)} (${short(load.min)}–${short(load.max)})` : "?"} cores busy meanwhile; the host took ${stolen ? short(stolen.max * 100) : "?"} % at most. Load before: ${machine.loadBefore}; also running: ${machine.alsoRunning.join(", ") || "nothing of note"}.`,
    ...(load && load.median > busyCoresMax
      ? [
          "**This machine was busy with other things: do not quote these numbers.** Chunks that wait are passed on together, which costs less, and delays are the machine's.",
        ]
      : []),
    "## Goals",
    goalsTable(result.goals),
    ...result.scenarios.flatMap((scenario) => {
      const table = scenarioTable(
        result.samples.filter((sample) => sample.scenario === scenario.name),
        order,
      );
      return table ? [`## ${scenario.name}: ${scenario.what}`, table] : [];
    }),
    ...(result.micro ? ["## Single steps of the hot path", microTable(result.micro)] : []),
    "## Pictures",
    [...chartsOf(result).keys()].map((file) => `![${file.replace(".svg", "")}](${file})`).join("\n\n"),
    "## Programs",
    [
      "| program | version | |",
      "|---|---|---|",
      ...programs.map(({ name, version, what }) => `| ${name} | ${version} | ${what} |`),
    ].join("\n"),
    ...(missing.length > 0 ? [`Not there: ${missing.map(({ name, why }) => `${name}: ${why}`).join("; ")}.`] : []),
    "How to read this: [benchmarks/README.md](../../README.md).",
    "",
  ].join("\n\n");
}

function goalsTable(goals: readonly GoalResult[]): string {
  const rows = goals.map(({ what, sense, goal, unit, reached, isMet }) => {
    if (!reached) return `| ${what} | ${sense} ${goal} ${unit} | not measured | |`;
    const { median, min, max } = reached;
    const off = sense === "at most" ? median / goal : goal / median;
    const verdict = isMet ? "reached" : `**missed**${Number.isFinite(off) ? ` by a factor of ${short(off)}` : ""}`;
    return `| ${what} | ${sense} ${goal} ${unit} | ${short(median)} ${unit} (${short(min)}–${short(max)}) | ${verdict} |`;
  });
  return ["| what | goal | this run | |", "|---|---|---|---|", ...rows].join("\n");
}

function scenarioTable(samples: readonly Sample[], order: readonly string[]): string | undefined {
  const programs = [...new Set([...order, ...samples.map(({ program }) => program)])].filter((name) =>
    samples.some(({ program }) => program === name),
  );
  const shown = columns.filter(([metric]) => samples.some(({ values }) => values[metric] !== undefined));
  if (programs.length === 0 || shown.length === 0) return undefined;
  const rows = programs.map((program) => {
    const cells = shown.map(([metric]) => cell(spreadIn(samples, program, metric)));
    return `| ${program === direct ? "(client and engine alone)" : program} | ${cells.join(" | ")} |`;
  });
  const heads = shown.map(([, head]) => head).join(" | ");
  return [`| | ${heads} |`, `|---|${"---|".repeat(shown.length)}`, ...rows].join("\n");
}

function spreadIn(samples: readonly Sample[], program: string, metric: string): Spread | undefined {
  return spreadOf(samples.flatMap((sample) => (sample.program === program ? (sample.values[metric] ?? []) : [])));
}

function cell(spread: Spread | undefined): string {
  if (!spread) return "";
  const { median, min, max, rounds } = spread;
  return rounds === 1 || min === max ? short(median) : `${short(median)} (${short(min)}–${short(max)})`;
}

function microTable(micro: Readonly<Record<string, number>>): string {
  return ["| step | CPU µs |", "|---|---|", ...Object.entries(micro).map(([step, us]) => `| ${step} | ${us} |`)].join(
    "\n",
  );
}

/** SVG by file name. */
export function chartsOf({ samples, date, machine }: BenchResult): ReadonlyMap<string, string> {
  const note = `${machine.cpu}, ${date}; median, line from minimum to maximum`;
  const charts = new Map<string, string>();
  const bars = (file: string, title: string, scenario: string, metric: string, roles: readonly string[] = []) => {
    const found = samples.filter((sample) => sample.scenario === scenario);
    const made = barsOf(found, metric, roles);
    if (made.length > 1) charts.set(file, barChart(title, note, made));
  };
  const cpu = ["router", "database", "agent"];
  bars(
    "cpu-per-chunk.svg",
    "CPU per streamed chunk, µs: 256 streams, a chunk each 20 ms (less is better)",
    "stream-256x20",
    "cpuMicrosPerChunk",
    cpu,
  );
  if (!charts.has("cpu-per-chunk.svg"))
    bars(
      "cpu-per-chunk.svg",
      "CPU per streamed chunk, µs: 64 streams, a chunk each 10 ms (less is better)",
      "stream-64x10",
      "cpuMicrosPerChunk",
      cpu,
    );
  bars(
    "requests-per-second.svg",
    "JSON requests a second on one core, 64 connections (more is better)",
    "json-64",
    "requestsPerSecond",
  );
  bars(
    "memory-per-stream.svg",
    "Memory per idle stream, KB: 5,000 open (less is better)",
    "memory-5000",
    "kilobytesPerStream",
    ["router", "agent"],
  );
  for (const scenario of ["stream-64x10", "stream-256x20"]) {
    const found = samples.filter((sample) => sample.scenario === scenario && sample.delays?.length);
    const names = [...new Set(found.map(({ program }) => program))].filter(
      (name) => name !== "weiche-plain" && name !== "bare-router" && name !== "hops-h2",
    );
    const lines = names.map((label) => ({
      label,
      buckets: mergeBuckets(found.flatMap(({ program, delays }) => (program === label ? [delays!] : []))),
    }));
    if (lines.length > 0)
      charts.set(
        `delay-${scenario}.svg`,
        delayChart(
          `Delay of a chunk, from engine to client: ${scenario}`,
          `${machine.cpu}, ${date}; all rounds together`,
          lines,
        ),
      );
  }
  return charts;
}

function barsOf(samples: readonly Sample[], metric: string, roles: readonly string[]): Bar[] {
  const names = [...new Set(samples.map(({ program }) => program))].filter((name) => name !== direct);
  return names.flatMap((label): Bar[] => {
    const spread = spreadIn(samples, label, metric);
    if (!spread) return [];
    const parts = roles.flatMap((role) => {
      const part = spreadIn(samples, label, `${metric} ${role}`);
      return part ? [{ label: role, value: part.median }] : [];
    });
    return [{ label, isOurs: label.startsWith("weiche"), spread, ...(parts.length > 1 ? { parts } : {}) }];
  });
}

/** The rows that the project's README shows, ours first. */
export function readmeTable({ samples, programs, date, machine }: BenchResult): string {
  const shown = programs.filter(({ name }) => !["weiche-plain", "bare-router"].includes(name));
  const value = (scenario: string, program: string, metric: string) => {
    const spread = spreadIn(
      samples.filter((sample) => sample.scenario === scenario),
      program,
      metric,
    );
    return spread ? short(spread.median) : "–";
  };
  const rows = shown.map(({ name, version }) => {
    const cells = [
      value("json-64", name, "requestsPerSecond"),
      value("json-64", name, "cpuMicrosPerRequest"),
      value("stream-256x20", name, "cpuMicrosPerChunk"),
      value("first-byte", name, "firstByteP50Us"),
      value("stream-256x20", name, "gapP99Us"),
      value("memory-5000", name, "kilobytesPerStream"),
    ];
    return `| ${name === "weiche" ? "**Weiche**: router, agent, TLS between" : `${name} ${version}`} | ${cells.join(" | ")} |`;
  });
  return [
    "| one core, loopback | JSON requests/s | CPU µs/request | CPU µs/chunk | first byte µs | p99 gap at 20 ms, µs | KB/idle stream |",
    "|---|---|---|---|---|---|---|",
    ...rows,
    "",
    `${date}, ${machine.cpu}, commit ${machine.commit}; \`npm run bench\` measures it again. Weiche authenticates, limits and meters each request; the others pass it on.`,
    "",
  ].join("\n");
}
