import { describe, expect, test } from "vitest";
import type { Sample } from "./campaign.ts";
import { addedFirstByte, changesOf, goals, isChanging, judgeGoals, type GoalResult } from "./goals.ts";
import { search } from "./special.ts";

function sample(scenario: string, program: string, round: number, values: Record<string, number>): Sample {
  return { scenario, program, round, values };
}

function found(samples: readonly Sample[], id: string): GoalResult {
  return judgeGoals(samples).find((goal) => goal.id === id)!;
}

describe("goals", () => {
  test("have different ids", () => {
    expect(new Set(goals.map(({ id }) => id)).size).toBe(goals.length);
  });

  test("a ratio is computed round by round", () => {
    const samples = [1, 2, 3].flatMap((round) => [
      sample("json-64", "weiche", round, { requestsPerSecond: 5_000 * round }),
      sample("json-64", "portkey", round, { requestsPerSecond: 1_000 * round }),
    ]);
    expect(found(samples, "json-portkey")).toMatchObject({ reached: { median: 5, min: 5, max: 5 }, isMet: true });
  });

  test("the added first byte time excludes the engine's own", () => {
    const samples = [
      sample("first-byte", "direct", 1, { firstByteP50Us: 100 }),
      sample("first-byte", "weiche-plain", 1, { firstByteP50Us: 700 }),
      sample("first-byte", "hops-h2", 1, { firstByteP50Us: 400 }),
    ];
    expect(found(samples, "first-byte-hops")).toMatchObject({ reached: { median: 2 }, isMet: false });
    expect(found(samples.slice(1), "first-byte-hops").reached).toBeUndefined();
  });

  test("the costs of several processes are added", () => {
    const samples = [
      sample("stream-256x20", "weiche-plain", 1, { "cpuMicrosPerChunk router": 30, "cpuMicrosPerChunk database": 2 }),
      sample("stream-256x20", "bare-router", 1, { "cpuMicrosPerChunk router": 32 }),
    ];
    expect(found(samples, "chunk-metering")).toMatchObject({ reached: { median: 1 }, isMet: true });
  });

  test("the cost of the limit store is a difference, round by round", () => {
    const samples = [1, 2, 3].flatMap((round) => [
      sample("first-byte", "weiche-store", round, { firstByteP50Us: 1_500 * round }),
      sample("first-byte", "weiche", round, { firstByteP50Us: 1_200 * round }),
      sample("json-64", "weiche-store", round, { "cpuMicrosPerRequest router": 130, "cpuMicrosPerRequest store": 15 }),
    ]);
    const firstByte = found(samples, "store-first-byte");
    expect(firstByte).toMatchObject({ reached: { median: 600, min: 300, max: 900 }, isMet: true, isRatio: false });
    expect(found(samples, "store-request").reached).toBeUndefined();
    const slower = samples.map((one) => ({ ...one, values: { firstByteP50Us: one.values["firstByteP50Us"]! * 1.01 } }));
    expect(found(slower, "store-first-byte")).toMatchObject({ reached: { median: 606 }, isMet: false });
  });

  test("the README shows how much time a program adds to the first token", () => {
    const samples = [1, 2, 3].flatMap((round) => [
      sample("first-byte", "direct", round, { firstByteP50Us: 100 * round }),
      sample("first-byte", "nginx", round, { firstByteP50Us: 110 * round }),
    ]);
    expect(addedFirstByte(samples, "nginx")).toMatchObject({ median: 20, min: 10, max: 30 });
  });

  test("a goal without a measurement is neither reached nor missed", () => {
    expect(judgeGoals([]).every(({ reached, isMet }) => reached === undefined && isMet === undefined)).toBe(true);
  });
});

describe("a change of the code", () => {
  const json = (requestsPerSecond: number, cpu: number) => [
    sample("json-64", "weiche", 1, {
      ...{ requestsPerSecond, cpuMicrosPerRequest: 2 * cpu, "cpuMicrosPerRequest router": cpu },
    }),
    sample("json-64", "weiche-plain", 1, { "cpuMicrosPerRequest router": cpu }),
  ];

  test("is computed from Weiche's part of each ratio, whether it is first or second", () => {
    expect(changesOf(["json-64"], json(4_000, 120), json(5_000, 100))).toMatchObject([
      { id: "json-portkey", worse: { median: 1.25 } },
      { id: "json-hops", worse: { median: 1.2 } },
      { id: "json-router-portkey", worse: { median: 1.2 } },
      { id: "request-metering", worse: { median: 1.2 } },
    ]);
  });

  test("of a first byte excludes the engine's own time", () => {
    const at = (us: number) =>
      ["weiche", "weiche-plain"].map((name) => sample("first-byte", name, 1, { firstByteP50Us: us }));
    const engine = sample("first-byte", "direct", 1, { firstByteP50Us: 100 });
    const changes = changesOf(["first-byte"], [engine, ...at(400)], [engine, ...at(300)]);
    expect(changes.map(({ id, worse }) => [id, worse.median])).toEqual([
      ["first-byte-hops", 1.5],
      ["first-byte-portkey", 1.5],
    ]);
  });

  test("throws if a value of Weiche in a ratio of these scenarios is missing", () => {
    expect(() => changesOf(["json-64"], json(4_000, 120), json(5_000, 100).slice(0, 1))).toThrow(
      "not measured: weiche-plain in json-64 (cpuMicrosPerRequest router)",
    );
  });

  test("excludes differences, because they are near zero", () => {
    const ids = changesOf(["json-64"], json(1, 1), json(1, 1)).map(({ id }) => id);
    expect(ids).not.toContain("store-request");
    expect(isChanging("json-64", "weiche-store")).toBe(false);
  });

  test("needs only Weiche's programs and, for the first byte, the engine alone", () => {
    const programs = ["direct", "weiche", "weiche-plain", "bare-router", "nginx", "portkey", "hops-h2"];
    const taking = (scenario: string) => programs.filter((name) => isChanging(scenario, name));
    expect(taking("json-64")).toEqual(["weiche", "weiche-plain"]);
    expect(taking("first-byte")).toEqual(["direct", "weiche", "weiche-plain"]);
    expect(taking("json-beside-6000")).toEqual(["weiche"]);
    expect(taking("memory-5000")).toEqual([]);
  });
});

test.each([0, 49, 50, 60, 75, 400, 7_999, 9_000])(
  "the search for a limit of %d approaches it from below",
  async (limit) => {
    let asked = 0;
    const most = await search(async (count) => (asked++, count <= limit), 50, 8_000);
    expect(most).toBeLessThanOrEqual(limit);
    expect(most).toBeGreaterThanOrEqual(limit < 50 ? 0 : Math.min(limit, 8_000) * 0.89);
    expect(asked).toBeLessThan(20);
  },
);
