/**
 * How many requests meet a full node, by strategy: `node benchmarks/sim/placement-table.ts [SEED]`. 30 nodes of 16 places,
 * 80 % of them taken on average.
 */
import { place } from "@weiche/router/src/nodes/placement.ts";
import { simulatePlacement, type PlacementOptions, type PlacementResult } from "./placement-simulation.ts";
import { anyNode, bestOfTwo, leastReported, ownAnd, withoutOwn, type Strategy } from "./placement-strategies.ts";

export const strategies = {
  random: anyNode,
  "least loaded by report": leastReported,
  "best of two, report + own": bestOfTwo,
  "production, without own requests": withoutOwn,
  "own + all of others": ownAnd(1),
  "own alone": ownAnd(0),
  production: place,
} as const satisfies Record<string, Strategy>;

export interface Case {
  readonly routers: number;
  readonly meanRunMs: number;
}

export const cases: readonly Case[] = [3, 10].flatMap((routers) =>
  [5_000, 50].map((meanRunMs) => ({ routers, meanRunMs })),
);

const nodes = 30;
const places = 16;
const use = 0.8;

/** `requests`: about so many are counted. */
export function simulateLoaded(
  { routers, meanRunMs }: Case,
  requests: number,
  given: Pick<PlacementOptions, "seed" | "strategy"> & Partial<PlacementOptions>,
): Promise<PlacementResult> {
  const perSecond = (nodes * places * use * 1_000) / meanRunMs;
  return simulatePlacement({
    ...{ routers, nodes, places, perSecond, meanRunMs, awake: true, startMs: 0, newsMs: 1, conversations: 0 },
    // Until the jump from no load is over: the first reports after it are of nodes that fill up.
    warmUpMs: Math.max(3 * meanRunMs, 3_200),
    countedMs: (requests / perSecond) * 1_000,
    ...given,
  });
}

/** 0 to 100. */
export function percentFull({ requests, metFull }: PlacementResult): number {
  return (metFull / requests) * 100;
}

if (import.meta.main) {
  const seed = Number(process.argv[2] ?? 1);
  console.log(`| | ${cases.map(({ routers, meanRunMs }) => `${routers} routers, ${meanRunMs} ms`).join(" | ")} |`);
  console.log(`|---|${"---|".repeat(cases.length)}`);
  const rows = Object.entries(strategies).map(([name, strategy]) => ({ name, strategy, conversations: 0 }));
  rows.push({ name: "production, 300 conversations", strategy: place, conversations: 300 });
  for (const { name, strategy, conversations } of rows) {
    const cells: string[] = [];
    for (const one of cases) {
      const result = await simulateLoaded(one, 20_000, { seed, conversations, strategy: () => strategy });
      cells.push(percentFull(result).toFixed(1));
    }
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
}
