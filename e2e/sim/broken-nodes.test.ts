/**
 * Tests how routers treat nodes whose engines fail: they avoid these nodes, try them with single requests, and use them
 * again once they work. `WEICHE_SEED` sets another seed.
 */
import { describe, expect, test } from "vitest";
import { place } from "@weiche/router/src/nodes/placement.ts";
import { simulatePlacement, type Fate, type PlacementOptions, type SimAttempt } from "./placement-simulation.ts";
import { forgetful, impatient, unforgiving } from "./placement-strategies.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 1);
const brokenMs = 80_000;
const sizes = [
  { nodes: 2, perSecond: 10 },
  { nodes: 10, perSecond: 20 },
  { nodes: 30, perSecond: 40 },
] as const;

type Given = Partial<PlacementOptions> & Pick<PlacementOptions, "nodes" | "perSecond">;

/** Lets node 0 fail for 80 s and work again for 40 s. */
async function run(fate: (attempt: SimAttempt) => Fate, given: Given) {
  const { course } = await simulatePlacement({
    ...{ seed, routers: 1, places: [16], awake: true, startMs: 0, newsMs: 1, conversations: 0, meanRunMs: 500 },
    ...{ warmUpMs: 3_200, countedMs: brokenMs + 39_999, strategy: () => place },
    fate: (attempt) => (attempt.sinceMs < brokenMs ? fate(attempt) : undefined),
    ...given,
  });
  const sum = (from: number, to: number, of: (ten: (typeof course)[number]) => number) =>
    course.slice(from, to).reduce((total, ten) => total + of(ten), 0);
  const minute = sum(0, 6, ({ requests }) => requests);
  /** Returns the attempts at node 0 as a share of the average per node. */
  const shareOf = (from: number, to: number) => {
    const all = sum(from, to, ({ attempts }) => attempts.reduce((total, count) => total + count, 0));
    return (sum(from, to, ({ attempts }) => attempts[0] ?? 0) * given.nodes) / all;
  };
  return {
    failedInFirstMinute: sum(0, 6, ({ failed }) => failed) / minute,
    failedAfterwards: sum(6, Infinity, ({ failed }) => failed),
    attemptsInFirstMinute: sum(0, 6, ({ failedAttempts }) => failedAttempts) / minute,
    attemptsAfterwards: sum(6, 8, ({ failedAttempts }) => failedAttempts),
    shareWhileBroken: shareOf(2, 8),
    shareAtTheEnd: shareOf(11, 12),
  };
}

const atNode0 = (fate: Fate) => (attempt: SimAttempt) => (attempt.node === 0 ? fate : undefined);
const atOnce = atNode0({ failsAfterMs: 0 });

describe("with one failing node no request fails, at most 2 % of attempts fail in the first minute and single ones later, and the node is used again:", () => {
  describe.each(sizes)("$nodes nodes", (size) => {
    /**
     * `most`: the largest share of failing attempts, which is higher for rare failures. `least`: the smallest share of
     * requests for the node.
     */
    type Case = [string, (attempt: SimAttempt) => Fate, Partial<PlacementOptions>, most?: number, least?: number];
    test.each<Case>([
      ["all requests fail at once", atOnce, {}],
      ["the engine refuses all requests with 400 at once", atNode0({ failsAfterMs: 0, isRefused: true }), {}],
      ["all requests fail after 50 ms", atNode0({ failsAfterMs: 50 }), {}],
      ["every second request fails", (attempt) => (attempt.random() < 0.5 ? atOnce(attempt) : undefined), {}, 0.05],
      [
        "the requests for one of two models fail",
        (attempt) => (attempt.model === 0 ? atOnce(attempt) : undefined),
        { models: 2 },
        0.02,
        0.3,
      ],
    ])("%s", async (_what, fate, given, most = 0.02, least = 0) => {
      const seen = await run(fate, { ...size, ...given });
      expect(seen).toMatchObject({ failedInFirstMinute: 0, failedAfterwards: 0 });
      expect(seen.attemptsInFirstMinute).toBeLessThanOrEqual(most);
      expect(seen.attemptsAfterwards).toBeLessThanOrEqual(3);
      expect(seen.shareAtTheEnd).toBeGreaterThan(0.5);
      expect(seen.shareWhileBroken, "the node's other model is used").toBeGreaterThanOrEqual(least);
    });
  });

  test("with three routers that learn separately [C8]", async () => {
    const seen = await run(atOnce, { nodes: 10, perSecond: 60, routers: 3 });
    expect(seen).toMatchObject({ failedInFirstMinute: 0, failedAfterwards: 0 });
    expect(seen.attemptsInFirstMinute).toBeLessThanOrEqual(0.02);
    expect(seen.shareAtTheEnd).toBeGreaterThan(0.5);
  });
});

test("with two failing nodes of three, at most 2 % of the requests fail in the first minute, and none later [C8]", async () => {
  const seen = await run(({ node }) => (node < 2 ? { failsAfterMs: 0 } : undefined), { nodes: 3, perSecond: 10 });
  expect(seen.failedInFirstMinute).toBeLessThanOrEqual(0.02);
  expect(seen.failedAfterwards).toBe(0);
});

test("with a node that breaks answers in the middle, at most 2 % of the requests fail in the first minute, and single ones later", async () => {
  const seen = await run(atNode0({ failsAfterMs: 200, hasBegun: true }), { nodes: 10, perSecond: 20 });
  expect(seen.failedInFirstMinute).toBeLessThanOrEqual(0.02);
  expect(seen.failedAfterwards).toBeLessThanOrEqual(3);
});

test("a node whose first byte takes thirty times as long gets at most a tenth of its share", async () => {
  const firstByteMs = (node: number) => (node === 0 ? 6_000 : 200);
  const seen = await run(({ node }) => ({ firstByteMs: firstByteMs(node) }), { nodes: 10, perSecond: 20 });
  expect(seen.shareWhileBroken).toBeLessThan(0.1);
});

test.each<[string, (attempt: SimAttempt) => boolean]>([
  ["on every node", () => true],
  ["on one node", ({ node }) => node === 0],
])("one account whose requests fail %s makes no router avoid a node [C8]", async (_where, isThere) => {
  const fate = (attempt: SimAttempt): Fate =>
    attempt.account === 0 && isThere(attempt) ? { failsAfterMs: 0 } : undefined;
  const { shareWhileBroken, shareAtTheEnd, failedInFirstMinute } = await run(fate, {
    ...{ nodes: 3, perSecond: 20, accounts: 4 },
  });
  expect(failedInFirstMinute, "the account's own requests").toBeLessThan(0.35);
  for (const share of [shareWhileBroken, shareAtTheEnd]) expect(Math.abs(share - 1)).toBeLessThan(0.3);
});

describe("without a part of the production strategy", () => {
  const size = { nodes: 2, perSecond: 10 };
  test("a failing node gets most of the requests if routers do not remember outcomes [C8]", async () => {
    const { attemptsInFirstMinute } = await run(atOnce, { ...size, strategy: () => forgetful });
    expect(attemptsInFirstMinute).toBeGreaterThan(0.5);
  });
  test("a failing node gets more than 2 % of the requests if routers do not pause between trials", async () => {
    const { attemptsInFirstMinute } = await run(atOnce, { ...size, strategy: () => impatient });
    expect(attemptsInFirstMinute).toBeGreaterThan(0.5);
  });
  test("a recovered node is not used again if routers never try it", async () => {
    const { shareAtTheEnd } = await run(atOnce, { ...size, strategy: () => unforgiving });
    expect(shareAtTheEnd).toBe(0);
  });
  test("requests fail if routers do not repeat failed attempts", async () => {
    const { failedInFirstMinute } = await run(atOnce, { ...size, attemptsMax: 1 });
    expect(failedInFirstMinute).toBeGreaterThan(0);
  });
});
