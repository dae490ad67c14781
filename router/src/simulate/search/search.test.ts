/** The lower bound, and the search for the least number of slots. */
import { describe, expect, test } from "vitest";
import { Measured } from "../engine/measured.ts";
import { planOf } from "../plan/plan.ts";
import { loadOf } from "../plan/planned-load.ts";
import { boundsOf, findCapacity } from "./capacity.ts";
import { leastSlots } from "./least-slots.ts";
import { Asked, boundOf, slotsAtLeast } from "./lower-bound.ts";

const engine = {
  ...{ places: 32, prefillTokensPerSecond: Infinity, cacheTokens: Infinity },
  step: { baseMs: 10, perRunningMs: 0, perTokenMs: 0 },
};

test("a hundred rarely asked models need the slots that Aegaeon reports", () => {
  const asked = new Asked();
  // 0.037 requests per second of 16.8 s each, for an hour.
  for (let count = 0; count < 0.037 * 3_600; count++)
    asked.add({ atMs: 0, account: "a", model: "m", inputTokens: 0, outputTokens: 1_680 });
  const bound = boundOf("m", asked, engine, 3_600_000);
  expect(bound.askedShare).toBeCloseTo(0.46, 2);
  expect(slotsAtLeast(Array.from({ length: 100 }, () => bound))).toBe(47);
});

test("a busy model needs as many slots as its tokens fill", () => {
  const asked = new Asked();
  for (let count = 0; count < 36_000; count++)
    asked.add({ atMs: 0, account: "a", model: "m", inputTokens: 0, outputTokens: 1_000 });
  // The load has 10,000 tokens per second, and a slot generates 3,200.
  expect(slotsAtLeast([boundOf("m", asked, engine, 3_600_000)])).toBe(4);
});

describe("the search for the least number", () => {
  const search = async (atLeast: number, isMet: (slots: number) => boolean) => {
    const tried: number[] = [];
    const least = await leastSlots(atLeast, 40, async (slots) => {
      tried.push(slots);
      return { groups: [{ models: [], slots }], measured: new Measured(), verdicts: [], isMet: isMet(slots) };
    });
    return {
      slots: least!.best.groups[0]!.slots,
      below: least!.below?.groups[0]!.slots,
      isMet: least!.best.isMet,
      tried,
    };
  };

  test.each([1, 2, 3, 5, 17, 39])("finds %i from any lower bound, and the failing number below it", async (wanted) => {
    for (const atLeast of [1, 4, 30]) {
      const { slots, below } = await search(atLeast, (count) => count >= wanted);
      expect([slots, below]).toEqual([wanted, wanted === 1 ? undefined : wanted - 1]);
    }
  });

  test("does not take a number whose next one fails", async () => {
    const { slots } = await search(2, (count) => count === 3 || count >= 6);
    expect(slots).toBe(6);
  });

  test("ends with the largest number if none meets the goals", async () => {
    const { slots, isMet, tried } = await search(3, () => false);
    expect([slots, isMet]).toEqual([40, false]);
    expect(tried.length).toBeLessThan(12);
  });
});

test("a plan with a goal gets the least number of slots, and one slot less does not meet the goal", async () => {
  const plan = planOf(
    `models:
  - { model: a, startSeconds: 20, demand: { perSecond: 0.3 } }
  - { model: b, startSeconds: 20, demand: { perSecond: 0.1 } }
hours: 0.5
seeds: 3
goals: ["wait.p99<=20s"]
`,
    "plan.yaml",
  );
  const load = loadOf(plan);
  const { trial, below, isStopped } = await findCapacity(plan, load, boundsOf(plan, load), () => Promise.resolve(true));
  expect([isStopped, trial!.isMet, below!.isMet]).toEqual([false, true, false]);
  expect(trial!.groups[0]!.slots).toBe(below!.groups[0]!.slots + 1);
});

test("a search that is stopped returns the last fleet that it measured", async () => {
  const plan = planOf(
    "models: [{ model: a, demand: { perSecond: 20 } }]\nhours: 1\ngoals: ['wait.p99<=1ms']\n",
    "plan.yaml",
  );
  const load = loadOf(plan);
  let steps = 0;
  const stopped = await findCapacity(plan, load, boundsOf(plan, load), () => Promise.resolve(++steps < 1));
  expect([stopped.isStopped, stopped.trial]).toEqual([true, undefined]);
});
