/** The lower bound, and the search for the least number of slots. */
import { describe, expect, test } from "vitest";
import { Measured } from "../engine/measured.ts";
import { planOf } from "../plan/plan.ts";
import { loadOf } from "../plan/planned-load.ts";
import { findGrouping } from "./best-grouping.ts";
import { boundsOf, findCapacity } from "./capacity.ts";
import { groupingsOf, type Grouping } from "./groupings.ts";
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
      return {
        groups: [{ models: [], slots }],
        measured: new Measured(),
        verdicts: [],
        doneShare: 1,
        isMet: isMet(slots),
      };
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

test("a search that is stopped returns what it has measured of its first fleet", async () => {
  const plan = planOf(
    "models: [{ model: a, demand: { perSecond: 20 } }]\nhours: 1\ngoals: ['wait.p99<=1ms']\n",
    "plan.yaml",
  );
  const load = loadOf(plan);
  let steps = 0;
  const stopped = await findCapacity(plan, load, boundsOf(plan, load), () => Promise.resolve(++steps < 1));
  const { doneShare, measured } = stopped.trial!;
  expect([stopped.isStopped, doneShare < 1, measured.of("a").requests > 100]).toEqual([true, true, true]);
});

describe("groupings of models", () => {
  const bound = (model: string, askedShare: number) => ({
    ...{ model, askedShare, perSecond: 1, aloneSeconds: 1, busySlots: 0 },
  });
  const textOf = (groups: Grouping) =>
    groups
      .map((group) => group.toSorted().join("+"))
      .toSorted()
      .join(" ");

  test("are all 15 of four models, once each, and those with the lowest bound come first", () => {
    const models = [bound("a", 0.9), bound("b", 0.8), bound("c", 0.1), bound("d", 0.1)];
    const groupings = groupingsOf(models, () => true);
    expect([groupings.length, new Set(groupings.map(textOf)).size]).toEqual([15, 15]);
    const slots = groupings.map((groups) =>
      groups.reduce((sum, group) => sum + slotsAtLeast(models.filter(({ model }) => group.includes(model))), 0),
    );
    expect(slots).toEqual(slots.toSorted((x, y) => x - y));
    // Each has two slots. The busy models collide least if they do not share.
    expect(textOf(groupings[0]!)).toBe("a+c b+d");
  });

  test("leave out models that do not fit together into a slot", () => {
    const models = ["a", "b", "c"].map((model) => bound(model, 0.1));
    const apart = groupingsOf(models, (group) => !(group.includes("a") && group.includes("b")));
    expect(apart.map(textOf).toSorted()).toEqual(["a b c", "a b+c", "a+c b"]);
  });

  test("of more than eight models join the two groups that hurt least, one after the other", () => {
    const models = Array.from({ length: 12 }, (_, index) => bound(`m${index}`, index < 2 ? 0.9 : 0.05));
    const groupings = groupingsOf(models, (group) => !(group.includes("m0") && group.includes("m1")));
    const sizes = groupings.map((groups) => groups.length).toSorted((x, y) => x - y);
    expect(sizes).toEqual(Array.from({ length: 11 }, (_, index) => index + 2));
    for (const groups of groupings)
      expect(groups.some((group) => group.includes("m0") && group.includes("m1"))).toBe(false);
    // The rare models share a slot, and each busy model has one for itself.
    expect(groupings[0]!.map((group) => group.length).toSorted((x, y) => x - y)).toEqual([1, 1, 10]);
  });
});

test("the best grouping needs the least slots of those whose models fit together into a slot", async () => {
  const plan = planOf(
    `models:
  - { model: busy, activeGiB: 70, demand: { perSecond: 0.3 } }
  - { model: rare, wakeSeconds: 2, activeGiB: 50, asleepGiB: 12, demand: { perSecond: 0.01 } }
  - { model: seldom, wakeSeconds: 2, activeGiB: 50, asleepGiB: 12, demand: { perSecond: 0.01 } }
slotGiB: 80
hours: 0.5
seeds: 4
goals: ["wait.p90<=60s"]
`,
    "plan.yaml",
  );
  const load = loadOf(plan);
  const found = await findGrouping(plan, load, boundsOf(plan, load), () => Promise.resolve(true));
  expect(found.trial!.groups).toEqual([
    { models: ["busy"], slots: 1 },
    { models: ["rare", "seldom"], slots: 1 },
  ]);
  expect(found.groupings.map(({ slots, isMet }) => [slots, isMet])).toEqual([
    [2, true],
    [3, true],
  ]);
});
