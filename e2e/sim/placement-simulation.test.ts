/** Tests how several routers load the same nodes, each with its own view of them. `WEICHE_SEED` sets another seed. */
import { describe, expect, test } from "vitest";
import { place } from "@weiche/router/src/nodes/placement.ts";
import { simulatePlacement, type PlacementOptions } from "./placement-simulation.ts";
import { anyStart, ownAffinity, type Strategy } from "./placement-strategies.ts";
import {
  affinities,
  cases,
  percentFull,
  simulateLoaded,
  strategies,
  unevenPlaces,
  type Case,
} from "./placement-table.ts";

const seed = Number(process.env["WEICHE_SEED"] ?? 1);
const isNightly = process.env["WEICHE_NIGHTLY"] === "1";
/** Number of requests per run. With short requests this takes about a second, one period of reports. */
const requests = isNightly ? 50_000 : 3_000;
const seeds = Array.from({ length: isNightly ? 6 : 1 }, (_, index) => seed + index);
const percentMax = 5;

async function percentOf(strategy: Strategy, at: Case, given: Partial<PlacementOptions> = {}): Promise<number> {
  return percentFull(await simulateLoaded(at, requests, { seed, strategy: () => strategy, ...given }));
}

describe("if several routers place requests on nodes with 80 % of their places taken,", () => {
  describe.each<{ readonly what: string; readonly given: Partial<PlacementOptions> }>([
    { what: "nodes of 16 places", given: {} },
    { what: "nodes of 16 places, 300 conversations", given: { conversations: 300 } },
    { what: "nodes of 8 and of 24 places, 300 conversations", given: { places: unevenPlaces, conversations: 300 } },
  ])("at most 5 % of the requests meet a full node, with each seed: $what", ({ given }) => {
    test.each(cases)("$routers routers, requests of $meanRunMs ms", async (at) => {
      const percents: number[] = [];
      for (const seed of seeds) percents.push(await percentOf(place, at, { ...given, seed }));
      expect(percents.filter((percent) => percent > percentMax)).toEqual([]);
    });
  });

  test.each([50, 5_000])("no request meets a full node with one router and requests of %i ms", async (meanRunMs) => {
    expect(await percentOf(place, { routers: 1, meanRunMs }, { conversations: 300 })).toBe(0);
  });

  /** The cheapest case of a strategy is first, and a quick run has only this one. */
  const worse: readonly (Case & { readonly name: keyof typeof strategies })[] = [
    ...(isNightly ? cases : cases.slice(0, 1)).flatMap((at) => [
      { name: "random" as const, ...at },
      { name: "least loaded by report" as const, ...at },
    ]),
    { name: "best of two, report + own", routers: 3, meanRunMs: 50 },
    ...(isNightly ? [{ name: "best of two, report + own" as const, routers: 10, meanRunMs: 50 }] : []),
    { name: "production, without own requests", routers: 10, meanRunMs: 5_000 },
    { name: "own + all of others", routers: 10, meanRunMs: 5_000 },
  ];
  test.each(worse)(
    "more than 10 % of the requests meet a full node with another strategy: $name, $routers routers, $meanRunMs ms",
    async (one) => {
      expect(await percentOf(strategies[one.name], one)).toBeGreaterThan(10);
    },
  );

  test.each(["first below 1.25 x mean", "production, reports taken for true"] as const)(
    "more than 10 % of the requests meet a full node with another affinity: %s, 10 routers, requests of 50 ms",
    async (name) => {
      const at = { routers: 10, meanRunMs: 50 };
      expect(await percentOf(affinities[name], at, { conversations: 300 })).toBeGreaterThan(10);
    },
  );
});

describe("ten routers that need an engine while none runs, and learn of each other's choice 50 ms late,", () => {
  const starts = async (strategy: Strategy) => {
    const { starts } = await simulatePlacement({
      ...{ seed, routers: 10, nodes: 30, places: [16], conversations: 0, strategy: () => strategy },
      ...{ awake: false, startMs: 5_000, newsMs: 50, perSecond: 100, meanRunMs: 1_000, warmUpMs: 0, countedMs: 1_000 },
    });
    return starts;
  };

  test("start one engine", async () => expect(await starts(place)).toBe(1));

  test("start several if each chooses at random", async () => expect(await starts(anyStart)).toBeGreaterThan(1));
});

describe("conversations reach the node that has their prefix", () => {
  const hitShareOf = async (routers: number, strategy: () => Strategy, given: Partial<PlacementOptions> = {}) => {
    const options = { seed, conversations: 300, strategy };
    const { hits, laterTurns } = await simulateLoaded({ routers, meanRunMs: 5_000 }, requests, {
      ...options,
      ...given,
    });
    return hits / laterTurns;
  };

  test("always, through ten routers, while nothing else runs", async () => {
    const alone = { perSecond: 100, meanRunMs: 0, warmUpMs: 0, countedMs: 10_000 };
    expect(await hitShareOf(10, () => place, alone)).toBe(1);
  });

  test("under load, through ten routers at least three quarters as often as through one, but less than half as often if each router knows only its own choices", async () => {
    const ofOne = await hitShareOf(1, () => place);
    expect((await hitShareOf(10, () => place)) / ofOne).toBeGreaterThan(0.75);
    expect((await hitShareOf(10, ownAffinity)) / ofOne).toBeLessThan(0.5);
  });
});

test("the same seed gives the same result", async () => {
  const run = () => simulateLoaded({ routers: 3, meanRunMs: 5_000 }, 500, { seed: 7, strategy: () => place });
  expect(await run()).toEqual(await run());
});
