/**
 * Measures how long requests wait on one slot whose models take turns, under the agent's present and earlier policy, on
 * virtual time (`npm run bench:policy [-- FOLDER]`). FOLDER or the variable WEICHE_TRACES names a folder with traces. Without
 * traces, generators make the load.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { barChart, type Bar } from "./load/charts.ts";
import { inTenths, spreadOf, tenth } from "./load/statistics.ts";
import { describeMachine, machineText, markdownTable, today } from "../e2e/cluster/measurement.ts";
import { resultsDirectory, writePage } from "./load/result-files.ts";
import { retrySeconds } from "../e2e/sim/policy/policy-run.ts";
import { tokensPerSecond } from "../e2e/sim/policy/arrival.ts";
import { measure, quickScenarios, scenarios, type Measured, type Scenario } from "../e2e/sim/policy/scenarios.ts";

const folder = process.argv[2] ?? process.env["WEICHE_TRACES"];
const seeds = [1, 2, 3];
const names = ["before", "now"] as const;
const residencySeconds = [0, 1, 2, 5];

interface Row {
  readonly scenario: string;
  readonly places: number;
  readonly switchSeconds: number;
  readonly requests: number;
  readonly before: readonly Measured[];
  readonly now: readonly Measured[];
}

const rows = scenarios(folder).map(rowOf);
const residencyRows = [...scenarios(folder), ...quickScenarios()].map(residencyRowOf);
const machine = describeMachine();
writePage(resultsDirectory, {
  "policy.md": pageOf(rows).join("\n"),
  "policy.json": { date: today(), commit: machine.commit, seeds, retrySeconds, tokensPerSecond, rows, residencyRows },
});
writeFileSync(join(resultsDirectory, "policy.svg"), chartOf(rows));

function rowOf(scenario: Scenario): Row {
  const { name, places, switchSeconds } = scenario;
  const loads = seeds.map((seed) => scenario.load(seed));
  const [before, now] = names.map((policy) => loads.map((load) => inTenths(measure(scenario, load, policy)))) as [
    Measured[],
    Measured[],
  ];
  console.error(`${name}, ${switchSeconds} s`);
  return { scenario: name, places, switchSeconds, requests: loads[0]!.length, before, now };
}

/** Measures one load under the present policy for each minimum residency. */
function residencyRowOf(scenario: Scenario) {
  const { name, places, switchSeconds } = scenario;
  const load = scenario.load(1);
  const measured = residencySeconds.map((seconds) =>
    inTenths(measure(scenario, load, "now", { minResidencyMs: seconds * 1_000 })),
  );
  return { scenario: name, places, switchSeconds, measured };
}

function residencyTable(): readonly string[] {
  return markdownTable(
    ["load", "switch", ...residencySeconds.map((seconds) => `${seconds} s`)],
    residencyRows.map(({ scenario, switchSeconds, measured }) => [
      scenario,
      `${switchSeconds} s`,
      ...measured.map(({ meanSeconds, switchesPerHour }) => `${meanSeconds} (${switchesPerHour})`),
    ]),
  );
}

function pageOf(all: readonly Row[]): readonly string[] {
  return [
    `# Turns of models on one slot, ${today()}`,
    "",
    `${machineText(machine)}; times are virtual. \`npm run bench:policy\` measures it again; without trace files only the generators.`,
    "",
    "*Before*: a drain closed ten seconds after the first request for another model, and refused further requests. *Now*: [decision 48](../../docs/decisions/0048-turns.md). The production reducer runs in both.",
    "",
    `24 hours each, means of ${seeds.length} seeds (a trace runs as it is, then twice with each request up to a minute later). An answer takes ${1_000 / tokensPerSecond.completion} ms for each of its tokens and a second for ${tokensPerSecond.prompt} tokens of its prompt. A refused client tries again after ${retrySeconds.join(", ")} s, or after \`retry-after\` if that is later, and then gives up. The wait goes from the first try to the admission, of those that were served. The last column: of the attempts that waited for more than a second, those that were estimated within a fifth of their wait when they came.`,
    "",
    ...markdownTable(
      [
        "load",
        "places",
        "switch",
        "mean wait, s",
        "p99, s",
        "p99 of the rarest model, s",
        "503 for each 100",
        "never served",
        "switches/h",
        "estimate within a fifth",
      ],
      all.map((row) => [
        row.scenario,
        row.places,
        `${row.switchSeconds} s`,
        ...(["meanSeconds", "p99Seconds", "rareP99Seconds", "refused"] as const).map((key) => both(row, key)),
        both(row, "neverServedPercent", " %"),
        both(row, "switchesPerHour"),
        `${meanOf(row.now, "estimatedPercent")} %`,
      ]),
    ),
    "",
    "Each cell: before → now. ![waits](policy.svg)",
    "",
    `Of 100 requests, at most ${mostSwitching(all)} get \`model_switching\` now. The other 503 are \`overloaded\`: the request has waited for \`waiterSeconds\` (300 s), because more is asked than the slot can serve.`,
    "",
    "## Minimum residency",
    "",
    "The minimum residency is the time for which an idle model keeps its slot while requests wait for another model ([decision 53](../../docs/decisions/0053-minimum-residency.md)). The table has the mean wait in seconds and, in brackets, the switches per hour, of one seed.",
    "",
    ...residencyTable(),
    "",
  ];
}

function mostSwitching(all: readonly Row[]): number {
  return Math.max(...all.flatMap(({ now }) => now.map(({ switching }) => switching)));
}

function both(row: Row, key: keyof Measured, unit = ""): string {
  const [before, now] = names.map((name) => meanOf(row[name], key));
  return `${before}${unit} → ${now}${unit}`;
}

function meanOf(measured: readonly Measured[], key: keyof Measured): number {
  return tenth(measured.reduce((sum, one) => sum + one[key], 0) / measured.length);
}

function chartOf(all: readonly Row[]): string {
  const bars = all.flatMap((row) =>
    names.map((name): Bar => {
      const spread = spreadOf(row[name].map(({ meanSeconds }) => meanSeconds))!;
      return { label: `${labelOf(row)} ${name}`, isOurs: name === "now", spread };
    }),
  );
  return barChart("Mean wait in seconds", "by load and time of a switch; blue: now, grey: before", bars);
}

/** Returns a label that is short enough for the chart. */
function labelOf({ scenario, switchSeconds }: Row): string {
  const short = scenario.replace(/servegen-|, two models|, one model rare| chats|,/g, "");
  return `${short} ${switchSeconds}s`;
}
