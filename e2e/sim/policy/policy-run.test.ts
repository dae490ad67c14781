/** Tests the bench of policies. It measures the real reducer, and each request ends once. */
import { expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { chatSizes, poisson, readAzureSizes, readServegen } from "./loads.ts";
import type { Arrival } from "./arrival.ts";
import { measure, quickScenarios, scenarios } from "./scenarios.ts";

const hours = 4;

/** Two models on 8 places with a switch of 10 s, for some hours. */
const scenario = scenarios(undefined)[0]!;
const load = scenario.load(1).filter(({ atMs }) => atMs < hours * 3_600_000);

test("with turns no request is refused, and requests wait less than half as long as before [B7]", () => {
  const before = measure(scenario, load, "before");
  const now = measure(scenario, load, "now");
  expect(before.switching).toBeGreaterThan(20);
  expect(now).toMatchObject({ refused: 0, neverServedPercent: 0 });
  expect(now.meanSeconds).toBeLessThan(before.meanSeconds / 2);
});

test("with fast switches, requests for short answers wait less than two thirds as long as with a minimum residency of 5 s", () => {
  const [quick] = quickScenarios();
  const hour = quick!.load(1).filter(({ atMs }) => atMs < 3_600_000);
  const long = measure(quick!, hour, "now", { minResidencyMs: 5_000 });
  expect(measure(quick!, hour, "now").meanSeconds).toBeLessThan((2 / 3) * long.meanSeconds);
});

test("if answers differ by half, most waits over a second are estimated within a fifth when they begin [B9]", () => {
  const even = load.map((arrival) => ({ ...arrival, completionTokens: 200 + (arrival.completionTokens % 100) }));
  expect(measure(scenario, even, "now").estimatedPercent).toBeGreaterThan(70);
});

test("the same load gives the same result, and the load has the rate 0.4/s", () => {
  expect(measure(scenario, load, "now")).toEqual(measure(scenario, load, "now"));
  expect(load.length / (hours * 3_600)).toBeCloseTo(0.4, 1);
});

test.each([...scenarios(undefined), ...quickScenarios()])(
  "$name is in order of time, within a day, and determined by its seed",
  ({ load: make }) => {
    const [times, again, others] = [2, 2, 1].map((seed) => make(seed).map(({ atMs }) => atMs));
    expect(again).toEqual(times);
    expect(others).not.toEqual(times);
    expect(times).toEqual(times!.toSorted((a, b) => a - b));
  },
);

test("independent requests have exponential gaps and the sizes of chats", () => {
  const random = createRandom(7);
  const many = poisson({ perSecond: 1, models: { a: 0.9, b: 0.1 }, sizes: chatSizes, random });
  const mean = (of: (one: Arrival) => number) => many.reduce((sum, one) => sum + of(one), 0) / many.length;
  const gaps = many.slice(1).map(({ atMs }, index) => atMs - many[index]!.atMs);
  const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - 1_000) ** 2, 0) / gaps.length);
  expect(deviation / 1_000).toBeCloseTo(1, 1);
  expect(mean(({ model }) => Number(model === "b"))).toBeCloseTo(0.1, 1);
  expect(mean(({ promptTokens }) => promptTokens) / 1_155).toBeCloseTo(1, 1);
  expect(mean(({ completionTokens }) => completionTokens) / 211).toBeCloseTo(1, 1);
});

test("without trace files only the generators provide loads", () => {
  expect(readServegen("/nowhere", "servegen-day5-0.25")).toBeUndefined();
  expect(readAzureSizes("/nowhere", "azure-2023-conv")).toBeUndefined();
  expect(scenarios(undefined).length).toBeGreaterThan(3);
});
