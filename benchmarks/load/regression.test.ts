import { describe, expect, test } from "vitest";
import type { Change } from "./goals.ts";
import { findRegressions, needsThird } from "./regression.ts";

describe("a regression", () => {
  const at = (median: number): Change[] => [
    { id: "chunk-nginx", what: "", worse: { median, min: median, max: median, rounds: 10 } },
  ];

  test("is more than 15 % worse in two runs of three", () => {
    expect(findRegressions([at(1.16), at(1), at(1.2)])).toMatchObject([{ id: "chunk-nginx", worse: [1.16, 1, 1.2] }]);
  });
  test("is not a single bad run", () => {
    expect(findRegressions([at(3), at(1.14), at(0.9)])).toEqual([]);
  });
  test("needs a third run only if one of the first two finds a worse ratio", () => {
    expect(needsThird([at(1.1), at(1.14)])).toBe(false);
    expect(needsThird([at(1.1), at(1.16)])).toBe(true);
  });
});
