import { expect, test } from "vitest";
import type { LoadRequest } from "../load.ts";
import { loadStatistics } from "./load-statistics.ts";

const request = (atMs: number, more: Partial<LoadRequest> = {}): LoadRequest => ({
  ...{ atMs, account: "a", model: "m", inputTokens: 100, outputTokens: 10 },
  ...more,
});

test("requests at equal distances have a coefficient of variation of 0 and no busiest minute", () => {
  const load = Array.from({ length: 241 }, (_, index) => request(index * 1_000, { inputTokens: index + 1 }));
  const { gapCv, worstMinute, ...rest } = loadStatistics(load);
  expect(gapCv).toBeCloseTo(0, 6);
  expect(worstMinute).toBeCloseTo(1, 1);
  expect(rest).toMatchObject({ requests: 241, seconds: 240, accounts: 1, input: { mean: 121, p50: 121, p99: 238 } });
});

test("pairs of requests at the same time vary by 1, and a burst shows as the busiest minute", () => {
  const pairs = Array.from({ length: 2_000 }, (_, index) => request(Math.floor(index / 2) * 10_000));
  expect(loadStatistics(pairs).gapCv).toBeCloseTo(1, 2);
  const burst = [request(0), ...Array.from({ length: 98 }, () => request(300_000)), request(600_000)];
  expect(loadStatistics(burst).worstMinute).toBeCloseTo(9.8, 5);
});

test("the repeated share counts what the conversation had before, answers included", () => {
  const turns = [{ conversation: "c" }, { conversation: "c", inputTokens: 300 }, { conversation: "d" }, {}];
  const { repeatedShare } = loadStatistics(turns.map((more, index) => request(index, more)));
  expect(repeatedShare).toBeCloseTo(110 / 600, 6);
});

test("each model has its own lengths, the one with most requests first", () => {
  const load = [request(0, { model: "rare", outputTokens: 7 }), request(1), request(1_000)];
  expect(loadStatistics(load).models).toMatchObject([
    { model: "m", requests: 2, perSecond: 2, output: { mean: 10 } },
    { model: "rare", requests: 1, output: { mean: 7, p50: 7, p99: 7 } },
  ]);
});
