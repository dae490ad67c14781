/**
 * Answers how many slots public traces need (`npm run bench:traces -- FOLDER`). FOLDER or the variable WEICHE_TRACES names a
 * folder with the traces, of which the page has the answers alone.
 */
import { join, resolve } from "node:path";
import { answerOf } from "@weiche/router/src/simulate/answer/answer.ts";
import { planOf } from "@weiche/router/src/simulate/plan/plan.ts";
import { loadOf } from "@weiche/router/src/simulate/plan/planned-load.ts";
import { boundsOf, findCapacity } from "@weiche/router/src/simulate/search/capacity.ts";
import { describeMachine, machineText, markdownTable, today } from "../e2e/cluster/measurement.ts";
import { resultsDirectory, writePage } from "./load/result-files.ts";

const folder = process.argv[2] ?? process.env["WEICHE_TRACES"];
if (folder === undefined) throw new Error("name the folder with the traces: npm run bench:traces -- FOLDER");
const goals = ["wait.p99<=30s", "refused<=1%"];
const traces = [
  { file: "azure-2023-conv.csv", models: ["chat"] },
  { file: "azure-2023-code.csv", models: ["code"] },
  { file: "mooncake-conversation.jsonl", models: ["chat"] },
  { file: "servegen-day5-0.25.jsonl", models: ["m-small", "m-mid", "m-large"] },
  { file: "servegen-day5-0.6.jsonl", models: ["m-small", "m-mid", "m-large"] },
  { file: "servegen-day9-0.25.jsonl", models: ["m-small", "m-mid", "m-large"] },
];

const rows = [];
for (const { file, models } of traces) rows.push(await answered(file, models));
const page = [
  `# Slots for public traces, ${today()}`,
  "",
  `${machineText(describeMachine())}; times are virtual. \`npm run bench:traces -- FOLDER\` measures it again.`,
  "",
  `The least number of slots with ${goals.join(" and ")} for each model. Engines have the defaults of a plan, and wake in 8 s. Models of a trace share all slots.`,
  "",
  ...markdownTable(
    ["trace", "requests", "models", "lower bound", "slots", "wait p50, s", "wait p99, s", "refused", "switches/h"],
    rows,
  ),
  "",
];
writePage(resultsDirectory, { "traces.md": page.join("\n") });

async function answered(file: string, models: readonly string[]): Promise<readonly (string | number)[]> {
  const of = models.length === 1 ? { model: models[0]! } : {};
  const given = { models: models.map((model) => ({ model, wakeSeconds: 8 })), goals, seeds: 1 };
  const text = JSON.stringify({ ...given, load: { trace: resolve(join(folder!, file)), ...of } });
  const plan = planOf(text, "plan.yaml");
  const load = loadOf(plan);
  const bounds = boundsOf(plan, load);
  const { all, fleet, slots } = answerOf(
    plan,
    load,
    await findCapacity(plan, load, bounds, () => Promise.resolve(true)),
  );
  const switches = slots.reduce((sum, { switchesPerHour }) => sum + switchesPerHour, 0);
  return [
    ...[file, all!.requests, models.length, bounds.groups[0]!, `${fleet!.slots}${fleet!.isMet ? "" : " (not enough)"}`],
    ...[all!.waitSeconds.p50.toFixed(1), all!.waitSeconds.p99.toFixed(1), `${(100 * all!.refusedShare).toFixed(1)} %`],
    switches.toFixed(1),
  ];
}
