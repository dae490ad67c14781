import { describe, expect, test } from "vitest";
import type { LoadRequest } from "../load.ts";
import { firstPart, parseWhatIf, scaled } from "./changes.ts";
import { merged } from "./merged.ts";

const load: readonly LoadRequest[] = Array.from({ length: 1_000 }, (_, index) => ({
  ...{ atMs: index * 2_000, account: `a${index % 7}`, model: index % 4 === 0 ? "rare" : "busy" },
  ...{ inputTokens: index + 1, outputTokens: 1, conversation: `c${index % 7}` },
}));
const isInOrder = (requests: readonly LoadRequest[]) =>
  requests.every(({ atMs }, index) => index === 0 || atMs >= requests[index - 1]!.atMs);

describe("a scaled load", () => {
  test("has the copies from further accounts and conversations, a few minutes later and in the order of time", () => {
    const all = [...scaled(load, { factor: 3 }, 1)];
    expect(all).toHaveLength(3_000);
    expect(isInOrder(all)).toBe(true);
    expect(all.filter(({ account }) => load.some((one) => one.account === account))).toEqual(load);
    const second = all.filter(({ account }) => account.endsWith(" (2)"));
    expect(second[0]!.atMs).toBeGreaterThan(0);
    expect(second[0]!.atMs).toBeLessThan(600_000);
    expect(second.map(({ inputTokens }) => inputTokens)).toEqual(load.map(({ inputTokens }) => inputTokens));
    expect(second[8]!.conversation).toBe("c1 (2)");
  });

  test("has a part of its requests for a factor with a fraction, the same ones each time", () => {
    const half = scaled(load, { factor: 0.5 }, 1);
    expect([...half].length).toBeGreaterThan(450);
    expect([...half].length).toBeLessThan(550);
    expect([...half]).toEqual([...half]);
    expect([...half]).not.toEqual([...scaled(load, { factor: 0.5 }, 2)]);
  });

  test("changes only the model that is named", () => {
    const all = [...scaled(load, { model: "rare", factor: 2 }, 1)];
    expect(all.filter(({ model }) => model === "busy")).toHaveLength(750);
    expect(all.filter(({ model }) => model === "rare")).toHaveLength(500);
    expect(isInOrder(all)).toBe(true);
    expect([...scaled(load, { model: "rare", factor: 0 }, 1)]).toEqual(load.filter(({ model }) => model === "busy"));
  });
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
  ["load doubles", { factor: 2 }],
  ["load x 1.5", { factor: 1.5 }],
  ["model busy triples", { model: "busy", factor: 3 }],
  ["model busy x0.5", { model: "busy", factor: 0.5 }],
  ["model rare stops", { model: "rare", factor: 0 }],
])("%s is read", (text, expected) => {
  expect(parseWhatIf(text, ["busy", "rare"])).toEqual({ text, ...expected });
});

test.each([
  ["loda doubles", 'cannot read "loda doubles": write it like "load doubles"'],
  ["model bsuy doubles", '"model bsuy doubles" names "bsuy", which is no model of the plan. Did you mean "busy"?'],
  ["load x 1e9", "cannot read"],
  ["load x 1000000", "a load can grow at most 1000 times"],
])("%s is refused with what to do", (text, message) => {
  expect(() => parseWhatIf(text, ["busy", "rare"])).toThrow(message);
});
