import { describe, expect, test } from "vitest";
import type { LoadRequest } from "../load.ts";
import { changedBy, firstPart, parseWhatIf, scaled } from "./changes.ts";
import { merged } from "./merged.ts";

const load: readonly LoadRequest[] = Array.from({ length: 1_000 }, (_, index) => ({
  ...{ atMs: index * 2_000, account: `a${index % 7}`, model: index % 4 === 0 ? "rare" : "busy" },
  ...{ inputTokens: index + 1, outputTokens: 1, conversation: `c${index % 7}` },
}));
/** So long that copies fit before the end. */
const run = { seed: 1, durationMs: 2_000_000 + 600_000 };
const isInOrder = (requests: readonly LoadRequest[]) =>
  requests.every(({ atMs }, index) => index === 0 || atMs >= requests[index - 1]!.atMs);

describe("a scaled load", () => {
  test("has the copies from further accounts and conversations, a few minutes later and in the order of time", () => {
    const all = [...scaled(load, { factor: 3 }, run)];
    expect(all).toHaveLength(3_000);
    expect(isInOrder(all)).toBe(true);
    expect(all.filter(({ account }) => load.some((one) => one.account === account))).toEqual(load);
    const second = all.filter(({ account }) => account.endsWith(" (2)"));
    expect(second[0]!.atMs).toBeGreaterThan(0);
    expect(second[0]!.atMs).toBeLessThan(600_000);
    expect(second.map(({ inputTokens }) => inputTokens)).toEqual(load.map(({ inputTokens }) => inputTokens));
    expect(second[8]!.conversation).toBe("c1 (2)");
  });

  test("has all copies of its requests within its time, however short that is", () => {
    for (const durationMs of [2_000_000, 10_000]) {
      const short = load.filter(({ atMs }) => atMs < durationMs);
      const all = [...scaled(short, { factor: 20 }, { seed: 1, durationMs })];
      expect([all.length, isInOrder(all)]).toEqual([20 * short.length, true]);
      expect(all.every(({ atMs }) => atMs >= 0 && atMs < durationMs)).toBe(true);
      // The copies do not coincide.
      expect(new Set(all.map(({ atMs }) => atMs)).size).toBeGreaterThan(15 * short.length);
    }
  });

  test("has a part of its requests for a factor with a fraction, the same ones each time", () => {
    const half = scaled(load, { factor: 0.5 }, run);
    expect([...half].length).toBeGreaterThan(450);
    expect([...half].length).toBeLessThan(550);
    expect([...half]).toEqual([...half]);
    expect([...half]).not.toEqual([...scaled(load, { factor: 0.5 }, { ...run, seed: 2 })]);
  });

  test("changes only the model that is named", () => {
    const all = [...scaled(load, { model: "rare", factor: 2 }, run)];
    expect(all.filter(({ model }) => model === "busy")).toHaveLength(750);
    expect(all.filter(({ model }) => model === "rare")).toHaveLength(500);
    expect(isInOrder(all)).toBe(true);
    expect([...scaled(load, { model: "rare", factor: 0 }, run)]).toEqual(load.filter(({ model }) => model === "busy"));
  });
});

test("in quiet hours, which may include midnight, nobody calls the model", () => {
  const hourly = Array.from({ length: 48 }, (_, hour) => ({ ...load[hour % 2]!, atMs: hour * 3_600_000 }));
  const quiet = parseWhatIf("nobody calls model rare from 22:00 to 6:00", ["busy", "rare"]);
  const hours = [...changedBy(hourly, quiet, { seed: 1, durationMs: 48 * 3_600_000, startsAtMs: 3 * 3_600_000 })].map(
    ({ atMs, model }) => [(atMs / 3_600_000 + 3) % 24, model],
  );
  expect(hours.filter(([, model]) => model === "busy")).toHaveLength(24);
  const called = new Set(hours.filter(([, model]) => model === "rare").map(([hour]) => hour));
  expect([...called].toSorted((a, b) => Number(a) - Number(b))).toEqual([7, 9, 11, 13, 15, 17, 19, 21]);
});

test("a model that joins has the requests of the one that it is like, from further accounts", () => {
  const all = [
    ...changedBy(load, parseWhatIf("model new joins like rare", ["busy", "rare"]), { ...run, startsAtMs: 0 }),
  ];
  const added = all.filter(({ model }) => model === "new");
  const like = load.filter(({ model }) => model === "rare");
  expect(added.map(({ inputTokens }) => inputTokens)).toEqual(like.map(({ inputTokens }) => inputTokens));
  expect(added.every(({ account }) => account.endsWith(" (2)"))).toBe(true);
  expect([all.length, isInOrder(all)]).toEqual([1_250, true]);
});

test("the first part of a load ends before its end time", () => {
  expect([...firstPart(load, 10_000)]).toEqual(load.slice(0, 5));
});

test("joined loads keep the order of time, and of the loads at the same time", () => {
  const at = (account: string, ...times: readonly number[]) => times.map((atMs) => ({ ...load[0]!, atMs, account }));
  const joined = [...merged([at("a", 1, 5, 5), [], at("b", 0, 5, 9)])];
  expect(joined.map(({ atMs, account }) => `${account}${atMs}`).join(" ")).toBe("b0 a1 a5 a5 b5 b9");
});

test.each([
  ["load doubles", { kind: "scaled", factor: 2 }],
  ["load x 1.5", { kind: "scaled", factor: 1.5 }],
  ["model busy triples", { kind: "scaled", model: "busy", factor: 3 }],
  ["model busy x0.5", { kind: "scaled", model: "busy", factor: 0.5 }],
  ["model rare stops", { kind: "scaled", model: "rare", factor: 0 }],
  [
    "nobody calls model rare from 22:00 to 6:30",
    { kind: "quiet", model: "rare", fromMs: 22 * 3_600_000, untilMs: 6.5 * 3_600_000 },
  ],
  ["model new joins like busy", { kind: "added", model: "new", like: "busy" }],
])("%s is read", (text, expected) => {
  expect(parseWhatIf(text, ["busy", "rare"])).toEqual({ text, ...expected });
});

test.each([
  ["loda doubles", 'cannot read "loda doubles": write it like "load doubles"'],
  ["model bsuy doubles", '"model bsuy doubles" names "bsuy", which is no model of the plan. Did you mean "busy"?'],
  ["load x 1e9", "cannot read"],
  ["nobody calls model rare from 22:00 to 24:30", "24:30 is not a time of the day"],
  ["nobody calls model rare from 6:00 to 6:00", 'names one time twice: write "model rare stops"'],
  ["model rare joins like busy", 'the plan has a model "rare" already'],
  ["model new joins like bsuy", 'Did you mean "busy"?'],
  ["load x 1000000", "a load can grow at most 1000 times"],
])("%s is refused with what to do", (text, message) => {
  expect(() => parseWhatIf(text, ["busy", "rare"])).toThrow(message);
});
