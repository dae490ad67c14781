/** Plans: mistakes with their lines, goals, and what is assumed. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { loadStatistics } from "../loads/load-statistics.ts";
import { loadOf } from "./planned-load.ts";
import { ModelTally } from "../engine/tally.ts";
import { parseGoal } from "./goals.ts";
import { checkFailures, failuresOf } from "./node-failure.ts";
import { planOf } from "./plan.ts";
import { askWhatIf } from "./what-if.ts";

const models = `models:
  - model: coder
    demand: { perSecond: 2 }
  - model: small
    startSeconds: 20
    demand: { perSecond: 0.1, inputTokens: 100, outputTokens: 10, accounts: 3 }
`;

test("a plan without a fleet has one group of all models", () => {
  expect(planOf(models, "plan.yaml").fleet).toEqual([{ models: ["coder", "small"] }]);
});

test("values that the plan does not give are assumed, with their models", () => {
  const { assumed } = planOf(models, "plan.yaml");
  const find = (path: string) => assumed.filter((each) => each.path === path);
  expect(find("startSeconds")).toEqual([{ path: "startSeconds", models: ["coder"], value: 60 }]);
  expect(find("places")).toEqual([{ path: "places", models: ["coder", "small"], value: 32 }]);
  expect(find("demand.inputTokens").map((each) => each.models)).toEqual([["coder"]]);
  expect(find("rules.drainOpenSeconds")).toEqual([{ path: "rules.drainOpenSeconds", models: [], value: 10 }]);
  expect(planOf(`${models}routers: 3\n`, "plan.yaml").assumed.some(({ path }) => path === "routers")).toBe(false);
});

test.each([
  ["an unknown key", `${models}goal: []\n`, 'plan.yaml:7: unknown key "goal"; did you mean "goals"?'],
  [
    "an unknown model in a group",
    `${models}fleet:\n  - models: [coder, smal]\n`,
    'plan.yaml:8: "smal" is no model of the plan. Did you mean "small"?',
  ],
  [
    "a model that no group serves",
    `${models}fleet:\n  - models: [coder]\n`,
    'plan.yaml:4: no group of the fleet serves "small"',
  ],
  ["a model that is written twice", `${models}  - model: coder\n`, 'plan.yaml:7: the model "coder" is written twice'],
  [
    "a plan in which no model has a demand",
    "models: [{ model: coder }]\n",
    "plan.yaml:1: no model has a demand or clients, and the plan has no load",
  ],
  [
    "a goal that cannot be read",
    `${models}goals: [fast]\n`,
    'plan.yaml:7: cannot read the goal "fast": write it like wait.p99<=30s or refused<=1%',
  ],
  [
    "a model in two groups of which one is searched",
    `${models}fleet:\n  - { models: [coder, small], slots: 1 }\n  - { models: [small] }\n`,
    "so each of them needs a number of slots",
  ],
  [
    "a second bound for a value",
    `${models}goals:\n  - wait.p99<=30s\n  - wait.p99<=10s\n`,
    'plan.yaml:9: the goals "wait.p99<=30s" and "wait.p99<=10s" give two bounds to one value: keep one of them',
  ],
  [
    "a goal for a model that is weaker than that for all",
    `${models}goals:\n  - coder wait.p99<=60s\n  - wait.p99<=30s\n`,
    'plan.yaml:8: the goal "coder wait.p99<=60s" has no effect beside "wait.p99<=30s", which is for each model',
  ],
  [
    "a step without time",
    "models:\n  - model: a\n    demand: { perSecond: 1 }\n    step: { baseMs: 0, perRunningMs: 0, perThousandTokensMs: 0 }\n",
    'plan.yaml:4: a step of "a" takes no time: give its baseMs',
  ],
  ["a version without quotes", "models:\n  - { model: a, engineVersion: 1.0 }\n", "must be a text: put it in quotes"],
  ["a rate that is no number", "models:\n  - { model: a, demand: { perSecond: .nan } }\n", "must be a number"],
  ["a text in place of a plan", "wait.p99<=30s", "plan.yaml:1: the file must have keys and values"],
  [
    "a model twice in a group",
    `${models}fleet:\n  - models: [coder, small, coder]\n`,
    'plan.yaml:8: "coder" is written twice in this group',
  ],
])("%s is a mistake with its line and what to do", (_, text, message) => {
  expect(() => planOf(text, "plan.yaml")).toThrow(message);
});

test("two bounds for one value contradict each other, also between plan and command line", () => {
  const text = `${models}goals: ["wait.p99<=30s"]\n`;
  expect(() => planOf(text, "plan.yaml", ["wait.p99<=10s"])).toThrow(
    '"wait.p99<=30s" and "wait.p99<=10s" give two bounds',
  );
  expect(planOf(text, "plan.yaml", ["coder wait.p99<=10s", "wait.p50<=1s"]).parsedGoals).toHaveLength(3);
});

test.each([
  ["wait.p99<=30%", "compares a time"],
  ["wait<=30s", "compares a time"],
  ["refused<=3s", "compares a share"],
  ["refused<=100%", "compares a share"],
  ["wiat.p99<=30s", 'Did you mean "wait"?'],
  ["codr wait.p99<=30s", 'Did you mean "coder"?'],
])("the goal %s is refused: it %s", (text, message) => {
  expect(() => parseGoal(text, ["coder"])).toThrow(message);
});

test("a goal compares seconds or shares of a model's requests", () => {
  const tally = new ModelTally();
  for (const ms of [0, 0, 0, 1_000, 60_000]) tally.wait.add(ms);
  [tally.attempts, tally.refused] = [200, 3];
  const [wait, refused] = [parseGoal("wait.p80<=500ms", []), parseGoal("refused <= 1 %", [])];
  expect([wait.most, refused.most]).toEqual([0.5, 0.01]);
  expect(wait.of(tally)).toBeCloseTo(1, 1);
  expect(refused.of(tally)).toBe(0.015);
});

describe("a plan that is changed by what a user asks", () => {
  const plan = planOf(
    `${models}fleet: [{ models: [coder, small], slots: 4 }]\nslotsPerNode: 2\nhours: 12\n`,
    "plan.yaml",
  );

  test("names the time and the length of a node's failure", () => {
    const { failures } = askWhatIf(plan, ["node node-2 fails at 10:30 for 90m", "node node-1 fails at 9:00"]).plan;
    expect(failuresOf(failures, 10 * 3_600_000)).toEqual([
      { node: "node-2", atMs: 1_800_000, untilMs: 1_800_000 + 5_400_000 },
      { node: "node-1", atMs: 23 * 3_600_000 },
    ]);
  });

  test.each([
    ["node node-3 fails at 10:00", 'names "node-3"; the plan has node-1 to node-2 for certain'],
    ["node node-2 fails at 25:00", "25:00 is not a time of the day"],
    ["node node-2 fails at 10:00 for 0s", "away for at least 1 s"],
    ["node node-2 breaks", 'write it like "node node-2 fails at 10:00"'],
    ["node node-2 fails at 13:00", "the load ends before, 12 h after its begin"],
  ])("%s is refused with what to do", (text, message) => {
    expect(() => {
      const asked = askWhatIf(plan, [text]).plan;
      checkFailures(asked, loadOf(asked));
    }).toThrow(message);
  });

  test("has only its first node for certain if the number of slots is searched", () => {
    const searched = planOf(models, "plan.yaml");
    expect(askWhatIf(searched, ["node node-1 fails at 10:00"]).plan.failures).toHaveLength(1);
    expect(() => askWhatIf(searched, ["node node-2 fails at 10:00"])).toThrow(
      "because the number of slots is searched",
    );
  });

  test("has one model more, which shares the slots and copies the load of another", () => {
    const { plan: asked, changes } = askWhatIf(plan, ["model extra joins like small"]);
    expect(asked.fleet).toEqual([{ models: ["coder", "small", "extra"], slots: 4 }]);
    expect(asked.models["extra"]).toMatchObject({ model: "extra", startSeconds: 20, demand: undefined });
    const counts = Map.groupBy(loadOf(asked, { whatIf: changes }).of(1), ({ model }) => model);
    expect(Math.abs(counts.get("extra")!.length - counts.get("small")!.length)).toBeLessThan(20);
  });
});

const composed = `models:
  - model: coder
    clients: { perSecond: 1, like: azure-code }
  - model: small
    demand: { perSecond: 0.1 }
hours: 2
`;

test("the load of clients is composed of accounts, beside the demands of other models", () => {
  const plan = planOf(composed, "plan.yaml");
  const { models } = loadStatistics(loadOf(plan).of(1));
  expect(models.map(({ model }) => model)).toEqual(["coder", "small"]);
  expect(models[0]!.input.p50).toBeGreaterThan(1_200);
  expect(plan.assumed).toContainEqual({ path: "clients.nightShare", models: ["coder"], value: 0.33 });
  const both = composed.replace("demand:", "clients: { perSecond: 1 }\n    demand:");
  expect(() => planOf(both, "plan.yaml")).toThrow("plan.yaml:5: the model has a demand and clients: keep one of both");
});

test("days and changes apply to a trace, which is never made longer", () => {
  const folder = temporaryDirectory();
  const line = (hour: number) =>
    JSON.stringify({ timestamp: hour * 3_600_000, model: "coder", account: "a", input_length: 9, output_length: 9 });
  writeFileSync(join(folder, "load.jsonl"), Array.from({ length: 49 }, (_, hour) => line(hour)).join("\n"));
  const plan = planOf("models: [{ model: coder }]\nload: { trace: load.jsonl }\n", join(folder, "plan.yaml"));
  const [all, first] = [loadOf(plan), loadOf(plan, { days: 1 })];
  expect([all.durationMs, [...all.of(1)].length]).toEqual([48 * 3_600_000 + 1, 49]);
  expect([first.durationMs, [...first.of(1)].length]).toEqual([24 * 3_600_000, 24]);
  const doubled = loadOf(plan, { days: 1, whatIf: [{ text: "load doubles", kind: "scaled", factor: 2 }] });
  expect([...doubled.of(1)]).toHaveLength(48);
  expect(doubled.changes).toEqual(["the first day", "load doubles"]);
  expect(() => loadOf(plan, { days: 3 })).toThrow("load.jsonl has only 2 days, but --days wants 3 days");
});

describe("a profile of an engine", () => {
  const profile = [
    ...["model: coder", "engine: vllm", "version: 0.32.0", "gpus: [H100, H100]", "agent: 1.0.0", "measured: today"],
    ...["places: 64", "step: { baseMs: 11, perRunningMs: 0.1, perThousandTokensMs: 0.03 }", "stopSeconds: 3"],
    "points: []",
  ].join("\n");

  function planWith(profileText: string, more: string, name = "coder.profile.yaml") {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, name), profileText);
    const text = models.replace("coder\n", `coder\n    profile: ${name}\n${more}`);
    try {
      return planOf(text, join(directory, "plan.yaml"));
    } catch (error) {
      throw new Error((error as Error).message.replaceAll(`${directory}/`, ""));
    }
  }

  test("replaces defaults, comes after values of the plan, and is not assumed", () => {
    const { models: found, profiles, assumed } = planWith(profile, "    step: { baseMs: 9 }\n");
    const step = { baseMs: 9, perRunningMs: 0.1, perThousandTokensMs: 0.03 };
    expect(found["coder"]).toMatchObject({ places: 64, stopSeconds: 3, startSeconds: 60, step });
    const values = { places: 64, stopSeconds: 3, step: { perRunningMs: 0.1, perThousandTokensMs: 0.03 } };
    expect(profiles).toEqual([
      { model: "coder", isComputed: false, source: "coder.profile.yaml, vllm 0.32.0 on 2 x H100", values },
    ]);
    const ofCoder = assumed.filter((each) => each.models.includes("coder")).map(({ path }) => path);
    expect(ofCoder).toEqual(expect.arrayContaining(["startSeconds", "prefillTokensPerSecond"]));
    for (const path of ["places", "stopSeconds", "step.baseMs", "step.perRunningMs"])
      expect(ofCoder).not.toContain(path);
  });

  test("that AIConfigurator has computed gives steps and the speed of prompts, fitted to its rows", () => {
    const rows = [1, 8, 64].flatMap((running) =>
      [1_000, 4_000].map((isl) => {
        const tpot = 8 + 0.1 * running + (0.02 * running * (isl + 100)) / 1_000;
        return `Qwen/Qwen3-32B,${isl},200,${running},${(isl / 10) * running},${tpot},tp2pp1dp1,vllm,0.14.0,h100_sxm`;
      }),
    );
    const heading = "model,isl,osl,concurrency,ttft,tpot,parallel,backend,version,system";
    const table = [heading, ...rows].join("\n");
    const { models: found, profiles } = planWith(table, "", "pareto.csv");
    expect(found["coder"]!.step.baseMs).toBeCloseTo(8, 6);
    expect(found["coder"]!.step.perRunningMs).toBeCloseTo(0.1, 6);
    expect(found["coder"]!.step.perThousandTokensMs).toBeCloseTo(0.02, 6);
    expect(found["coder"]!.prefillTokensPerSecond).toBeCloseTo(10_000, 6);
    const source = "pareto.csv, vllm 0.14.0 on h100_sxm tp2pp1dp1";
    expect(profiles).toMatchObject([{ model: "coder", isComputed: true, source }]);
    const refuse = (text: string, message: string, more = "") =>
      expect(() => planWith(text, more, "pareto.csv")).toThrow(message);
    refuse(table.replace("ttft", "tfft"), 'pareto.csv:1: the column "ttft" is missing; is "tfft" meant?');
    refuse(heading.replace("concurrency", "(d)bs"), "separates reading of prompts from answers");
    refuse(heading, "pareto.csv:1: the table has no rows");
    refuse(table.replace("1000,200", "1000,x"), 'pareto.csv:2: "osl" must be a number above 0');
    refuse(
      `${table}\n${rows[0]!.replace("tp2", "tp4")}`,
      'pareto.csv:8: "parallel" is "tp4pp1dp1" here and "tp2pp1dp1" before: keep the rows of one of them',
    );
    refuse(table, 'pareto.csv:2: "version" is "0.14.0", but', "    engineVersion: 0.15.0\n");
  });

  test.each([
    [
      "another version of the engine",
      profile,
      "    engineVersion: 0.33.1\n",
      'coder.profile.yaml:3: "version" is "0.32.0", but the plan\'s engineVersion of "coder" is "0.33.1": measure again with `weiche-agent profile coder`',
    ],
    [
      "an unknown version of the engine",
      profile.replace("version: 0.32.0\n", ""),
      "    engineVersion: 0.33.1\n",
      '"version" is missing, but',
    ],
    [
      "another model",
      profile.replace("coder", "codex"),
      "",
      'coder.profile.yaml:1: "model" is "codex", but the plan has this profile for "coder"',
    ],
    [
      "a misspelled field",
      profile.replace("stopSeconds", "stopSecond"),
      "",
      'coder.profile.yaml:9: unknown key "stopSecond"; did you mean "stopSeconds"?',
    ],
  ])("of %s is refused with its file, line and field", (_what, text, more, message) => {
    expect(() => planWith(text, more)).toThrow(message);
  });
});
