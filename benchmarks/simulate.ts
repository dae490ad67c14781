/**
 * Measures how fast `weiche simulate` is: a day at ten requests a second over 30 nodes (`npm run bench:simulate`). The goal is
 * 30 s on one core and 500 MB.
 */
import { createHash } from "node:crypto";
import { answerOf } from "@weiche/router/src/simulate/answer/answer.ts";
import { planOf } from "@weiche/router/src/simulate/plan/plan.ts";
import { loadOf } from "@weiche/router/src/simulate/plan/planned-load.ts";
import { boundsOf, findCapacity } from "@weiche/router/src/simulate/search/capacity.ts";
import { describeMachine, loadText, machineText, markdownTable, today } from "../e2e/cluster/measurement.ts";
import { resultsDirectory, writePage } from "./load/result-files.ts";

const hours = Number(process.argv[2] ?? 24);
const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
/** The second model has half the demand of the first, the third a third. */
const weights = names.map((_, index) => 1 / (index + 1));
const sum = weights.reduce((total, weight) => total + weight, 0);
const plan = planOf(
  `models:
${names.map((name, index) => `  - { model: ${name}, wakeSeconds: 8, demand: { perSecond: ${(10 * weights[index]!) / sum}, accounts: 100 } }`).join("\n")}
fleet:
  - { models: [${names.join(", ")}], slots: 30 }
hours: ${hours}
seeds: 1
`,
  "plan.yaml",
);
const load = loadOf(plan);
const bounds = boundsOf(plan, load);
const before = process.cpuUsage();
const capacity = await findCapacity(plan, load, bounds, () => Promise.resolve(true));
const cpu = process.cpuUsage(before);
const seconds = (cpu.user + cpu.system) / 1e6;
const answer = answerOf(plan, load, capacity);
const { requests, waitSeconds } = answer.all!;
const megabytes = process.resourceUsage().maxRSS / 1_024;
const digest = createHash("sha256").update(JSON.stringify(answer)).digest("hex").slice(0, 16);
const rows = [
  ["requests", requests],
  ["processor seconds", Number(seconds.toFixed(1))],
  ["requests per processor second", Math.round(requests / seconds)],
  ["memory at most, MB", Math.round(megabytes)],
  ["wait p99, s", waitSeconds.p99],
  ["digest of the answer", digest],
] as const;
const machine = describeMachine();
const page = [
  `# Speed of the simulator, ${today()}`,
  "",
  `${machineText(machine)}. ${loadText(machine)}`,
  "",
  "`npm run bench:simulate` measures it again. Other programs on the machine change the time that has passed more than the processor time.",
  "",
  `\`weiche simulate\`: ${hours} hours at ten requests per second for eight models that share 30 slots on 30 nodes, one router. The goal is 30 processor seconds and 500 MB for 24 hours. The digest is the same on every machine.`,
  "",
  ...markdownTable(["", "value"], rows),
  "",
];
writePage(resultsDirectory, { "simulate.md": page.join("\n") });
