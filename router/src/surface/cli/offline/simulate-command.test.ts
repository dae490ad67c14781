/** `weiche simulate` from its plan to its text, its JSON and its exit code. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, expect, test } from "vitest";
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
  const answer = JSON.parse(first.output) as Record<string, unknown>;
  expect(answer).toMatchObject({ schemaVersion: 1, seed: 1, runs: 2, isStopped: false });
  expect((answer["assumed"] as unknown[]).length).toBeGreaterThan(5);
});

test("mistakes of the plan are printed with file and line before anything runs", async () => {
  const { code, output, errors } = await simulate(`${models}goals: ["wiat.p99<=1s"]\n`);
  expect([code, output]).toEqual([1, ""]);
  expect(errors).toBe('weiche: FOLDER/plan.yaml:6: the goal "wiat.p99<=1s" names "wiat". Did you mean "wait"?\n');
});
