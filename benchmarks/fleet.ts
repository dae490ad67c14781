/**
 * `npm run bench:fleet [-- FOLDER]`: how long requests wait on 2, 4 and 30 slots that share models, by rules of placement,
 * on virtual time. FOLDER, or the variable WEICHE_TRACES, has trace files; without them the generators are measured.
 */
import { describeMachine, machineText, markdownTable, today } from "../e2e/cluster/measurement.ts";
import { resultsDirectory, writePage } from "./load/result-files.ts";
import { inTenths } from "./load/statistics.ts";
import {
  fleetScenarios,
  longScenarios,
  measureFleet,
  type FleetMeasured,
  type FleetScenario,
} from "../e2e/sim/policy/fleet-scenarios.ts";
import { fleetStrategies, longStrategies } from "../e2e/sim/policy/fleet-strategies.ts";
import type { Strategy } from "../e2e/sim/placement-strategies.ts";

const folder = process.argv[2] ?? process.env["WEICHE_TRACES"];
const seed = 1;
const newsMs = 50;
const oldNewsMs = 5_000;

type Strategies = Readonly<Record<string, () => Strategy>>;

const scenarios = fleetScenarios(folder);
const rules = tableOf(scenarios, fleetStrategies);
const long = tableOf(longScenarios(), longStrategies);
const old = tableOf(scenarios, { now: fleetStrategies.now }, oldNewsMs);
const machine = describeMachine();
writePage(resultsDirectory, {
  "fleet.md": page().join("\n"),
  "fleet.json": { date: today(), commit: machine.commit, seed, rules, long, old },
});

interface Row {
  readonly scenario: Omit<FleetScenario, "load">;
  readonly requests: number;
  readonly measured: Readonly<Record<string, FleetMeasured>>;
}

function tableOf(all: readonly FleetScenario[], strategies: Strategies, ageMs = newsMs): readonly Row[] {
  return all.map((scenario) => {
    const load = scenario.load(seed);
    const measured = Object.entries(strategies).map(([name, make]) => {
      const one = measureFleet(scenario, load, make(), { seed, newsMs: ageMs });
      console.error(
        `${scenario.slots} slots, ${scenario.name}, ${scenario.switchSeconds} s, ${name}: ${one.meanSeconds}`,
      );
      return [name, inTenths(one)] as const;
    });
    const { load: _, ...said } = scenario;
    return { scenario: said, requests: load.length, measured: Object.fromEntries(measured) };
  });
}

function page(): readonly string[] {
  return [
    `# Models on several slots, ${today()}`,
    "",
    `${machineText(machine)}; times are virtual. \`npm run bench:fleet\` measures it again; without trace files only the generators.`,
    "",
    `Production slots of 16 places, production reports and placement, three routers, any model on any slot, reports ${newsMs} ms old, one seed. Each cell has the mean wait in seconds and the p99 in brackets. If there were any, it also has the 503 answers per 100 requests and the requests that were never served.`,
    "",
    "*Before*: placement did not consider where requests for the model already waited. *Now*: [decision 52](../../docs/decisions/0052-placement-among-shared-slots.md). The other columns are rules that were tried on top of *now*.",
    "",
    ...markdown(rules),
    "",
    "## Long answers",
    "",
    "One answer of a hundred takes 300 s, and routers know which.",
    "",
    ...markdown(long),
    "",
    `## Reports that are ${oldNewsMs / 1_000} s old`,
    "",
    ...markdown(
      rules.map((row, index) => ({
        ...row,
        measured: { [`${newsMs} ms`]: row.measured["now"]!, [`${oldNewsMs / 1_000} s`]: old[index]!.measured["now"]! },
      })),
    ),
    "",
  ];
}

function markdown(rows: readonly Row[]): readonly string[] {
  const names = Object.keys(rows[0]!.measured);
  return markdownTable(
    ["slots", "load", "switch", ...names],
    rows.map(({ scenario: { slots, name, switchSeconds }, measured }) => [
      ...[slots, name, `${switchSeconds} s`],
      ...names.map((rule) => cell(measured[rule]!)),
    ]),
  );
}

function cell({ meanSeconds, p99Seconds, refused, neverServedPercent }: FleetMeasured): string {
  const refusals = refused > 0 ? `, ${refused}` : "";
  const never = neverServedPercent > 0 ? `, ${neverServedPercent} % never` : "";
  return `${meanSeconds} (${p99Seconds})${refusals}${never}`;
}
