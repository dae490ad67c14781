/** `weiche simulate` from its plan to its text, its JSON and its exit code. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, expect, test } from "vitest";
import type { Answer } from "../../../simulate/answer/answer.ts";
import { runCli } from "../cli.ts";

const folder = mkdtempSync(join(tmpdir(), "weiche-plan-"));
afterAll(() => rmSync(folder, { recursive: true }));

const models = `models:
  - { model: coder, demand: { perSecond: 0.5 } }
  - { model: rare, wakeSeconds: 5, demand: { perSecond: 0.01 } }
hours: 0.2
seeds: 2
`;

async function simulate(text: string, ...more: readonly string[]) {
  const file = join(folder, "plan.yaml");
  writeFileSync(file, text);
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const code = await runCli(["simulate", file, ...more], {}, { input: new PassThrough(), output, errors });
  const textOf = (stream: PassThrough) => {
    let all = "";
    for (let part = stream.read() as Buffer | null; part; part = stream.read() as Buffer | null) all += part.toString();
    return all;
  };
  return { code, output: textOf(output), errors: textOf(errors).replaceAll(folder, "FOLDER") };
}

test("the first line is the answer, and the lower bound is printed before the first run", async () => {
  const { code, output, errors } = await simulate(models, "--goal", "wait.p99<=60s", "--goal", "refused<=1%");
  expect([code, errors]).toEqual([0, "lower bound: 1 slot, if no request waits and no switch takes time\n"]);
  expect(output.split("\n")[0]).toMatch(/^\d slots? on \d nodes? suffices?/);
  expect(output).toContain("places 32, startSeconds 60");
});

test("goals that the planned fleet does not meet are an error, with the value that fails", async () => {
  const { code, output, errors } = await simulate(
    `${models}fleet: [{ models: [coder, rare], slots: 1 }]\ngoals: ["wait.p99<=1s"]\n`,
  );
  expect(code).toBe(1);
  expect(output.split("\n")[0]).toMatch(/^1 slot on 1 node do(es)? not meet the goals: wait\.p99 \d+(\.\d)? s for /);
  expect(errors).toContain("weiche: the goals are not met");
});

test("JSON has the version of its schema, the seed and what was assumed, and the same bytes each time", async () => {
  const first = await simulate(models, "--json");
  const again = await simulate(models, "--json");
  expect(again.output).toBe(first.output);
  const answer = JSON.parse(first.output) as Answer;
  expect(answer).toMatchObject({ schemaVersion: 1, seed: 1, runs: 2, isStopped: false });
  expect(answer.assumed.length).toBeGreaterThan(5);
});

test("mistakes of the plan are printed with file and line before anything runs", async () => {
  const { code, output, errors } = await simulate(`${models}goals: ["wiat.p99<=1s"]\n`);
  expect([code, output]).toEqual([1, ""]);
  expect(errors).toBe('weiche: FOLDER/plan.yaml:6: the goal "wiat.p99<=1s" names "wiat". Did you mean "wait"?\n');
});

test.each([
  [
    "a load",
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n",
    "FOLDER/plan.yaml is not a plan: it is a load. Write a plan that names it, with `load: { trace: FILE }`",
  ],
  [
    "an exported load",
    '{"at":"2026-11-20T10:00:00.123Z","account":"a","model":"m","inputTokens":1,"outputTokens":1}\n',
    "FOLDER/plan.yaml is not a plan: it is a load. Write a plan that names it, with `load: { trace: FILE }`",
  ],
  ["a packed file", "\x1f\x8b\0\0", "FOLDER/plan.yaml is not a plan: it is not text, but a plan is YAML"],
  [
    "a plan whose load is missing",
    "models: [{ model: a }]\nload: { trace: lod.csv }\n",
    "cannot read FOLDER/lod.csv: it does not exist (ENOENT). Check the path",
  ],
  [
    "a plan whose profile is a folder",
    "models: [{ model: a, profile: ., demand: { perSecond: 1 } }]\n",
    "cannot read FOLDER: it is a folder (EISDIR). Name a file",
  ],
])("%s in the place of a plan is refused with what to do", async (_, text, message) => {
  expect(await simulate(text)).toEqual({ code: 1, output: "", errors: `weiche: ${message}\n` });
});

test("policies and changed assumptions are compared with the plan on the same load", async () => {
  const fixed = `${models}fleet: [{ models: [coder, rare], slots: 1 }]\n`;
  const { code, output } = await simulate(fixed, "--json", "--sensitivity", "--policy", "drainOpenSeconds=60");
  expect(code).toBe(0);
  const answer = JSON.parse(output) as Answer;
  const [policy] = answer.policies;
  const rare = answer.slots[0]!.switchesPerHour;
  expect([policy!.name, policy!.switchesPerHour < rare]).toEqual(["drainOpenSeconds=60", true]);
  const slower = answer.sensitivity.find(({ name }) => name.startsWith("startSeconds"))!;
  expect(slower.waitSeconds.p99).toBeGreaterThan(answer.all!.waitSeconds.p99);
});

test("several values of a rule are compared one by one, and words say which is best", async () => {
  const fixed = `${models}fleet: [{ models: [coder, rare], slots: 1 }]\n`;
  const { output } = await simulate(fixed, "--policy", "minResidencySeconds=0,20,fairness=false", "--sensitivity");
  expect(output).toMatch(/^minResidencySeconds=0,fairness=false +\d/m);
  expect(output).toMatch(/^minResidencySeconds=20,fairness=false +\d/m);
  expect(output).toMatch(/^(minResidencySeconds=\d+,fairness=false is best: |none of these shortens )/m);
  expect(output).toMatch(/^startSeconds moves the answer most: startSeconds × 1.25 gives .*\. Measure it first$/m);
});

test("a chart shows the waits of each model and what each slot does, on light and dark pages", async () => {
  const file = join(folder, "day.svg");
  const fixed = `${models}fleet: [{ models: [coder, rare], slots: 2 }]\nhours: 2\n`.replace("hours: 0.2\n", "");
  expect((await simulate(fixed, "--chart", file)).code).toBe(0);
  const svg = readFileSync(file, "utf8");
  for (const text of ["slot a of node-1", "slot a of node-2", "2 slots on 2 nodes: wait p50", "1:00", "switching"])
    expect(svg).toContain(text);
  expect(svg.match(/<title>coder<\/title>/g)!.length).toBeGreaterThanOrEqual(2);
  expect(svg).toContain("prefers-color-scheme: dark");
  expect(svg).not.toContain("NaN");
  const { code, errors } = await simulate(fixed, "--chart", join(folder, "nowhere/day.svg"));
  const advice = "its folder does not exist (ENOENT). Make the folder first";
  expect([code, errors]).toEqual([1, `weiche: cannot write FOLDER/nowhere/day.svg: ${advice}\n`]);
});

test("models are grouped on slots if a goal compares the groupings", async () => {
  const { code, output } = await simulate(models, "--grouping", "--goal", "wait.p99<=60s");
  expect([code, output.split("\n")[0]]).toEqual([0, expect.stringMatching(/^\d slots? on \d nodes? suffices?/)]);
  expect(output).toMatch(/^coder \+ rare \(\d\) +\d/m);
  const { errors } = await simulate(models, "--grouping");
  expect(errors).toContain("so it needs a goal");
});

test.each([
  ["fairness=false,fairness=true", "names fairness twice"],
  ["drainOpenSecond=5", 'names "drainOpenSecond"; did you mean "drainOpenSeconds"?'],
  ["drainOpenSeconds=soon", 'has no valid value for drainOpenSeconds: "soon"'],
])("the policy %s is refused before anything runs", async (policy, message) => {
  const { code, errors } = await simulate(models, "--policy", policy);
  expect([code, errors.includes(message), errors.includes("lower bound")]).toEqual([1, true, false]);
});

test("a recorded load is simulated, and a bad line of it is named before anything runs", async () => {
  const line = (atMs: number, model: string) =>
    `${JSON.stringify({ timestamp: atMs, model, account: "a", input_length: 100, output_length: 50 })}\n`;
  const plan = `models: [{ model: coder }]\nload: { trace: load.jsonl }\nseeds: 1\n`;
  writeFileSync(join(folder, "load.jsonl"), line(0, "coder") + line(1_000, "coder"));
  expect((await simulate(plan)).output.split("\n")[0]).toContain("1 slot on 1 node: wait p50");
  writeFileSync(join(folder, "load.jsonl"), line(0, "coder") + line(1_000, "codr"));
  const { code, errors } = await simulate(plan);
  expect([code, errors.includes("FOLDER/load.jsonl:2: ")]).toEqual([1, true]);
});

test.each([
  [
    "whose changes leave no request",
    models,
    ["--what-if", "load stops"],
    /^no request is left to simulate: correct the load of the plan, --days or --what-if$/,
  ],
  [
    "with requests for years",
    "models: [{ model: a, demand: { perSecond: 10000 } }]\nhours: 8000\n",
    [],
    /^the models are asked 288000000000 times, and at most 100000000 requests can be simulated: lower perSecond or hours$/,
  ],
  [
    "for more slots than anybody has",
    "models: [{ model: a, prefillTokensPerSecond: 0.001, demand: { perSecond: 1 } }]\nhours: 0.1\n",
    [],
    /^the load needs at least \d+ slots, and at most 10000 can be simulated: correct its requests and tokens, or the speed/,
  ],
])("a plan %s is refused before anything runs", async (_, text, options, message) => {
  const { code, output, errors } = await simulate(text, ...options);
  expect([code, output]).toEqual([1, ""]);
  expect(errors.replace(/^weiche: /, "").trimEnd()).toMatch(message);
});

test("without a goal, a fleet without a number of slots gets its lower bound, which is assumed", async () => {
  const busy = "models: [{ model: a, demand: { perSecond: 8 } }]\nhours: 0.1\nseeds: 1\n";
  const { output, errors } = await simulate(busy);
  const [, slots] = /^lower bound: (\d+) slots/.exec(errors)!;
  expect(Number(slots)).toBeGreaterThan(1);
  expect(output).toMatch(new RegExp(`^${slots} slots on ${slots} nodes: wait p50 `));
  expect(output).toContain(`  a: slots ${slots} (the lower bound, because no goal is given), `);
});

test("changes of the load are named in the answer, and a change that cannot be read is refused", async () => {
  const { code, output } = await simulate(models, "--scale", "0.5", "--what-if", "model rare stops");
  expect([code, output]).toEqual([0, expect.stringContaining("what if: load x 0.5; model rare stops\n")]);
  const { errors } = await simulate(models, "--what-if", "model rar stops");
  expect(errors).toBe('weiche: "model rar stops" names "rar", which is no model of the plan. Did you mean "rare"?\n');
  expect(await simulate(models, "--scale", "0")).toMatchObject({ code: 2 });
});
