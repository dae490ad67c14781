import { describe, expect, test } from "vitest";
import { accountLoad } from "./account-load.ts";
import { fits } from "./fits.ts";
import { loadStatistics } from "./load-statistics.ts";

const hourMs = 3_600_000;
const options = { model: "m", perSecond: 0.5, fit: fits["azure-chat"], nightShare: 1, durationMs: hourMs, seed: 1 };
const load = (more: Partial<typeof options>) => accountLoad({ ...options, ...more });

/** Mean, median and 99th percentile of each trace, which lasts about an hour. */
const traces = {
  "azure-chat": { perSecond: 5.53, input: [1_155, 1_020, 4_142], output: [211, 129, 601], gapCv: 1.1, minute: 1.5 },
  "azure-code": { perSecond: 2.57, input: [2_048, 1_469, 7_436], output: [28, 13, 249], gapCv: 13.2, minute: 4.1 },
  // Its times are multiples of three seconds, so nothing is known about the gaps.
  "mooncake-chat": { perSecond: 3.4, input: [12_035, 6_909, 85_399], output: [343, 350, 1_115], minute: 1.2 },
} as const;

describe.each(Object.entries(traces))("a load like %s has the trace's", (name, { perSecond, ...trace }) => {
  const fit = fits[name as keyof typeof traces];
  const measured = [1, 2, 3].map((seed) => loadStatistics(load({ fit, perSecond, seed })));
  const mean = (of: (one: (typeof measured)[number]) => number) => measured.reduce((sum, one) => sum + of(one), 0) / 3;
  const off = (value: number, expected: number) => Math.abs(value / expected - 1);

  test.each(["input", "output"] as const)("lengths of its %s within a tenth", (side) => {
    for (const [index, key] of (["mean", "p50", "p99"] as const).entries())
      expect(
        off(
          mean((one) => one[side][key]),
          trace[side][index]!,
        ),
      ).toBeLessThan(0.1);
  });

  test("rate within a sixth, and bursts within a quarter", () => {
    expect(
      off(
        mean((one) => one.perSecond),
        perSecond,
      ),
    ).toBeLessThan(1 / 6);
    expect(
      off(
        mean((one) => one.worstMinute),
        trace.minute,
      ),
    ).toBeLessThan(0.25);
    const gapCv =
      "gapCv" in trace
        ? off(
            mean((one) => one.gapCv),
            trace.gapCv,
          )
        : 0;
    expect(gapCv).toBeLessThan(0.25);
  });
});

test("a third of the prompt tokens of a load like mooncake-chat repeat their conversation, as in the trace", () => {
  const { repeatedShare } = loadStatistics(load({ fit: fits["mooncake-chat"], perSecond: 3.4 }));
  expect(repeatedShare).toBeGreaterThan(0.3);
  expect(repeatedShare).toBeLessThan(0.4);
});

test("a conversation continues with a longer prompt, once its answer could be read", () => {
  const before = new Map<string, { readonly tokens: number; readonly atMs: number }>();
  const continued: { readonly longer: number; readonly laterMs: number }[] = [];
  for (const request of load({ fit: fits["mooncake-chat"], perSecond: 2 })) {
    const last = before.get(request.conversation!);
    if (last) continued.push({ longer: request.inputTokens - last.tokens, laterMs: request.atMs - last.atMs });
    before.set(request.conversation!, { tokens: request.inputTokens + request.outputTokens, atMs: request.atMs });
  }
  expect(continued.length).toBeGreaterThan(1_000);
  expect(continued.filter(({ longer, laterMs }) => longer <= 0 || laterMs < 10_000)).toEqual([]);
});

test("the night has its share of the rate at noon, and the day keeps its mean", () => {
  const hours = Array<number>(24).fill(0);
  for (const { atMs } of load({ perSecond: 1, nightShare: 0.25, durationMs: 24 * hourMs }))
    hours[Math.floor(atMs / hourMs)]!++;
  expect(hours.reduce((sum, count) => sum + count, 0) / 86_400).toBeCloseTo(1, 1);
  const around = (hour: number) => hours[hour - 1]! + hours[hour]!;
  expect(around(2) / around(14)).toBeGreaterThan(0.2);
  expect(around(2) / around(14)).toBeLessThan(0.32);
});

test("few accounts send most requests", () => {
  const counts = Map.groupBy(load({ perSecond: 5 }), ({ account }) => account);
  const sizes = [...counts.values()].map(({ length }) => length).toSorted((a, b) => b - a);
  const sum = (some: readonly number[]) => some.reduce((total, size) => total + size, 0);
  expect(sizes.length).toBeGreaterThan(25);
  expect(sum(sizes.slice(0, 5)) / sum(sizes)).toBeGreaterThan(0.5);
});

test("the same seed makes the same load, and another seed another one", () => {
  const first = [...load({})];
  expect([...load({})]).toEqual(first);
  expect([...load({ seed: 2 })]).not.toEqual(first);
});
