/**
 * Nodes whose engines fail, and what routers then do: they keep away from them, try them with single requests, and come
 * back once they are well. `WEICHE_SEED` takes another seed.
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

/** Node 0 meets its fate for 80 s, and is well again for 40 s. */
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
  /** The attempts at node 0 as a share of those that each node got on average. */
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

describe("with one node that fails no request fails, at most 2 % meet its failures in the first minute, then single ones, and it is used again when it is well:", () => {
  describe.each(sizes)("$nodes nodes", (size) => {
    /** `most`: of requests that fail only now and then more are needed until that is certain. `least`: of its share. */
    type Case = [string, (attempt: SimAttempt) => Fate, Partial<PlacementOptions>, most?: number, least?: number];
    test.each<Case>([
      ["all at once", atOnce, {}],
      ["all after 50 ms", atNode0({ failsAfterMs: 50 }), {}],
      ["every second one", (attempt) => (attempt.random() < 0.5 ? atOnce(attempt) : undefined), {}, 0.05],
      ["one of two models", (attempt) => (attempt.model === 0 ? atOnce(attempt) : undefined), { models: 2 }, 0.02, 0.3],
    ])("%s", async (_what, fate, given, most = 0.02, least = 0) => {
      const seen = await run(fate, { ...size, ...given });
      expect(seen).toMatchObject({ failedInFirstMinute: 0, failedAfterwards: 0 });
      expect(seen.attemptsInFirstMinute).toBeLessThanOrEqual(most);
      expect(seen.attemptsAfterwards).toBeLessThanOrEqual(3);
      expect(seen.shareAtTheEnd).toBeGreaterThan(0.5);
      expect(seen.shareWhileBroken, "its other model is used").toBeGreaterThanOrEqual(least);
    });
  });

  test("through three routers, of which each learns by itself", async () => {
    const seen = await run(atOnce, { nodes: 10, perSecond: 60, routers: 3 });
    expect(seen).toMatchObject({ failedInFirstMinute: 0, failedAfterwards: 0 });
    expect(seen.attemptsInFirstMinute).toBeLessThanOrEqual(0.02);
    expect(seen.shareAtTheEnd).toBeGreaterThan(0.5);
  });
});

test("with two of three nodes that fail at most 2 % of the requests fail in the first minute, and none after it", async () => {
  const seen = await run(({ node }) => (node < 2 ? { failsAfterMs: 0 } : undefined), { nodes: 3, perSecond: 10 });
  expect(seen.failedInFirstMinute).toBeLessThanOrEqual(0.02);
  expect(seen.failedAfterwards).toBe(0);
});

test("with a node that breaks answers in the middle at most 2 % fail in the first minute, and then single ones", async () => {
  const seen = await run(atNode0({ failsAfterMs: 200, hasBegun: true }), { nodes: 10, perSecond: 20 });
  expect(seen.failedInFirstMinute).toBeLessThanOrEqual(0.02);
  expect(seen.failedAfterwards).toBeLessThanOrEqual(3);
});

test("a node whose first byte takes thirty times as long gets a tenth of its share at most", async () => {
  const firstByteMs = (node: number) => (node === 0 ? 6_000 : 200);
  const seen = await run(({ node }) => ({ firstByteMs: firstByteMs(node) }), { nodes: 10, perSecond: 20 });
  expect(seen.shareWhileBroken).toBeLessThan(0.1);
});

test.each<[string, (attempt: SimAttempt) => boolean]>([
  ["on every node", () => true],
  ["on one node", ({ node }) => node === 0],
])("one account whose requests fail %s takes no node from the others", async (_where, isThere) => {
  const fate = (attempt: SimAttempt): Fate =>
    attempt.account === 0 && isThere(attempt) ? { failsAfterMs: 0 } : undefined;
  const { shareWhileBroken, shareAtTheEnd, failedInFirstMinute } = await run(fate, {
    ...{ nodes: 3, perSecond: 20, accounts: 4 },
  });
  expect(failedInFirstMinute, "its own ones").toBeLessThan(0.35);
  for (const share of [shareWhileBroken, shareAtTheEnd]) expect(Math.abs(share - 1)).toBeLessThan(0.3);
});

describe("without a part of it", () => {
  const size = { nodes: 2, perSecond: 10 };
  test("a node that fails at once takes most of the requests if nothing is remembered", async () => {
    const { attemptsInFirstMinute } = await run(atOnce, { ...size, strategy: () => forgetful });
    expect(attemptsInFirstMinute).toBeGreaterThan(0.5);
  });
  test("more than 2 % come to it if nobody waits between the requests that try it", async () => {
    const { attemptsInFirstMinute } = await run(atOnce, { ...size, strategy: () => impatient });
    expect(attemptsInFirstMinute).toBeGreaterThan(0.5);
  });
  test("it is not used again if nothing tries it", async () => {
    const { shareAtTheEnd } = await run(atOnce, { ...size, strategy: () => unforgiving });
    expect(shareAtTheEnd).toBe(0);
  });
  test("requests fail if a failed attempt is not followed by another one", async () => {
    const { failedInFirstMinute } = await run(atOnce, { ...size, attemptsMax: 1 });
    expect(failedInFirstMinute).toBeGreaterThan(0);
  });
});
