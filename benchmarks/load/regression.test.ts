import { describe, expect, test } from "vitest";
import { judgeGoals, type GoalResult } from "./goals.ts";
import { baselineOf, findRegressions, needsThird } from "./regression.ts";

describe("a regression", () => {
  const at = (median: number, id = "chunk-nginx"): GoalResult[] => [
    { ...judgeGoals([]).find((goal) => goal.id === id)!, reached: { median, min: median, max: median, rounds: 5 } },
  ];

  test("is more than 15 % worse in two runs of three", () => {
    expect(findRegressions(at(1), [at(1.16), at(1), at(1.2)])).toMatchObject([
      { id: "chunk-nginx", runs: [1.16, 1, 1.2] },
    ]);
  });
  test("is not a single bad run", () => {
    expect(findRegressions(at(1), [at(3), at(1.14), at(0.9)])).toEqual([]);
  });
  test("is searched for in a third run only if one of two has found something", () => {
    expect(needsThird(at(1), [at(1.1), at(1.14)])).toBe(false);
    expect(needsThird(at(1), [at(1.1), at(1.16)])).toBe(true);
  });
  test("is judged by the median of several runs", () => {
    const baseline = baselineOf([at(1.24), at(0.92), at(1.03)]);
    expect(baseline).toMatchObject([{ id: "chunk-nginx", reached: { median: 1.03, min: 0.92, max: 1.24, rounds: 3 } }]);
    expect(baselineOf([at(30, "memory-5000"), at(30, "memory-5000")])).toEqual([]);
  });
  test("is a lower value where more is better", () => {
    expect(findRegressions(at(5, "json-portkey"), [at(4, "json-portkey"), at(4.2, "json-portkey")])).toHaveLength(1);
    expect(findRegressions(at(5, "json-portkey"), [at(9, "json-portkey"), at(8, "json-portkey")])).toEqual([]);
  });
  test("is never seen in absolute values, which belong to a machine, nor in what a run left out", () => {
    expect(findRegressions(at(10, "memory-5000"), [at(100, "memory-5000"), at(100, "memory-5000")])).toEqual([]);
    expect(findRegressions(at(1), [[], [], at(9)])).toEqual([]);
  });
});
