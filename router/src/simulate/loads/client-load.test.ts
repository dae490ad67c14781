import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { openClients, type ClientLoadOptions } from "./client-load.ts";
import { loadStatistics } from "./load-statistics.ts";
import { lengthFrom, quantilesOf } from "./quantiles.ts";
import { createRandom } from "@weiche/shared/random.ts";

const lengths = { input_tokens: "{100: 0.5, 200: 0.5}", output_tokens: "{10: 1.0}" };
/** Two hours, with the second window without requests. */
const trace = (rate: number, pattern: string) =>
  Array.from({ length: 12 }, (_, index) =>
    index === 1 ? `${600 * index},0,0,,0,0` : `${600 * index},${rate},1,${pattern},3.5`,
  ).join("\n");

function open(files: Readonly<Record<string, string>>, options: ClientLoadOptions = {}) {
  const folder = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  try {
    return openClients(folder, options);
  } catch (error) {
    throw new Error((error as Error).message.replaceAll(folder, "FOLDER"));
  }
}

const files = {
  "m-small/chunk-0-trace.csv": trace(2, "Gamma,0.25"),
  "m-small/chunk-0-dataset.json": JSON.stringify({ 0: { input_tokens: "{}", output_tokens: "{}" }, 3600: lengths }),
  "m-large/chunk-7-trace.csv": trace(0.1, "Weibull,0.5"),
  "m-large/chunk-7-dataset.json": JSON.stringify({ 0: lengths }),
};

describe("ServeGen's client files", () => {
  test("make a load with the rate, the bursts and the lengths of each client, in the order of time", () => {
    const { durationMs, perSecond, of } = open(files);
    expect([durationMs, perSecond]).toEqual([7_200_000, (2.1 * 11) / 12]);
    const load = [...of(1)];
    expect(load.every(({ atMs }, index) => index === 0 || atMs >= load[index - 1]!.atMs)).toBe(true);
    expect(load.filter(({ atMs }) => atMs >= 600_000 && atMs < 1_200_000)).toEqual([]);
    const { models, accounts } = loadStatistics(load);
    expect(accounts).toBe(2);
    expect(models.map(({ model, requests }) => [model, requests])).toEqual([
      ["m-small", 13_200],
      ["m-large", 660],
    ]);
    const small = load.filter(({ model }) => model === "m-small");
    expect(small[0]!.account).toBe("m-small-0");
    expect(models[0]!.input.mean).toBeGreaterThan(140);
    expect(models[0]!.input.mean).toBeLessThan(160);
    expect(models[0]!.output).toMatchObject({ mean: 10, p50: 10, p99: 10 });
    // A Gamma shape of 1/4 is a variation of 2, and the longest gaps of a window do not fit into it.
    const { gapCv } = loadStatistics(small.filter(({ atMs }) => atMs >= 1_200_000));
    expect(gapCv).toBeGreaterThan(1.8);
    expect(gapCv).toBeLessThan(2.2);
  });

  test("make the same load for the same seed, another one for another seed", () => {
    const { of } = open(files);
    expect([...of(1)]).toEqual([...of(1)]);
    expect([...of(1)]).not.toEqual([...of(2)]);
  });

  test("are scaled to a mean rate, without losing requests of clients that send few", () => {
    const { of } = open(files, { perSecond: 0.1 });
    expect(Math.abs([...of(1)].length / 720 - 1)).toBeLessThan(0.06);
  });

  test("of one model have the name of their folder, or the name that the plan gives", () => {
    const one = {
      "chunk-0-trace.csv": files["m-large/chunk-7-trace.csv"],
      "chunk-0-dataset.json": JSON.stringify({ 0: lengths }),
    };
    expect([...open(one, { model: "coder", models: ["coder"] }).of(1)][0]).toMatchObject({ model: "coder" });
  });

  test.each([
    ["no client files", { "readme.txt": "" }, "FOLDER: the folder has no client files such as chunk-0-trace.csv"],
    [
      "a line with too few fields",
      { ...files, "m-large/chunk-7-trace.csv": "0,1,1" },
      "FOLDER: chunk-7-trace.csv:1: the line has 3 fields instead of",
    ],
    [
      "a time that goes back",
      { ...files, "m-large/chunk-7-trace.csv": "600,1,1,Gamma,1,1\n0,1,1,Gamma,1,1" },
      "chunk-7-trace.csv:2: the time goes back",
    ],
    [
      "an unknown pattern",
      { ...files, "m-large/chunk-7-trace.csv": "0,1,1,Pareto,1,1" },
      'chunk-7-trace.csv:1: "pattern" must be Gamma or Weibull, not "Pareto"',
    ],
    [
      "no lengths",
      { ...files, "m-large/chunk-7-dataset.json": "{}" },
      "chunk-7-dataset.json has no distribution of lengths",
    ],
    ["a missing file", { "chunk-1-trace.csv": trace(1, "Gamma,1") }, "chunk-1-dataset.json: the file is missing"],
  ])("with %s are refused with file and line", (_what, given, message) => {
    expect(() => open(given)).toThrow(message);
  });

  test("for an unknown model are refused with the nearest known one", () => {
    expect(() => open(files, { models: ["m-small", "m-larg"] })).toThrow(
      '"m-large" is no model of the plan; did you mean "m-larg"?',
    );
  });
});

test("a table of quantiles keeps the shares of lengths", () => {
  const quantiles = quantilesOf("{1: 0.25, 10: 0.5, 5000: 0.25}")!;
  const random = createRandom(1);
  const drawn = Array.from({ length: 20_000 }, () => lengthFrom(quantiles, random));
  const share = (length: number) => drawn.filter((each) => each === length).length / drawn.length;
  expect(share(1)).toBeCloseTo(0.25, 1);
  expect(share(10)).toBeCloseTo(0.5, 1);
  expect(share(5_000)).toBeCloseTo(0.25, 1);
  expect(quantilesOf("{}")).toBeUndefined();
});
