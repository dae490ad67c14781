/**
 * Prints how many requests meet a full node, by strategy: `node e2e/sim/placement-table.ts [SEED]`. There are 30
 * nodes with 80 % of their places taken on average.
 */
import { place } from "@weiche/router/src/nodes/placement.ts";
import { simulatePlacement, type PlacementOptions, type PlacementResult } from "./placement-simulation.ts";
import {
  anyNode,
  bestOfTwo,
  firstBelow,
  leastReported,
  ownAnd,
  trusting,
  withoutOwn,
  type Strategy,
} from "./placement-strategies.ts";

export const strategies = {
  random: anyNode,
  "least loaded by report": leastReported,
  "best of two, report + own": bestOfTwo,
  "production, without own requests": withoutOwn,
  "own + all of others": ownAnd(1),
  "own alone": ownAnd(0),
  "production, reports taken for true": trusting,
  production: place,
} as const satisfies Record<string, Strategy>;

/** Strategies for requests of conversations. */
export const affinities = {
  "first below 1.25 x mean": firstBelow,
  "production, reports taken for true": trusting,
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
const places = [16];
/** The same number of places, unevenly distributed. */
export const unevenPlaces = [8, 24];
const use = 0.8;

/** Counts about `requests` requests. */
export function simulateLoaded(
  { routers, meanRunMs }: Case,
  requests: number,
  given: Pick<PlacementOptions, "seed" | "strategy"> & Partial<PlacementOptions>,
): Promise<PlacementResult> {
  const perSecond = (nodes * places[0]! * use * 1_000) / meanRunMs;
  return simulatePlacement({
    ...{ routers, nodes, places, perSecond, meanRunMs, awake: true, startMs: 0, newsMs: 1, conversations: 0 },
    // Skips the jump from no load, because the first reports after it describe nodes that fill up.
    warmUpMs: Math.max(3 * meanRunMs, 3_200),
    countedMs: (requests / perSecond) * 1_000,
    ...given,
  });
}

/** Returns a percentage. */
export function percentFull({ requests, metFull }: PlacementResult): number {
  return (metFull / requests) * 100;
}

/** Returns the percentage of later requests of conversations that came to the node of the previous request. */
function percentHit({ hits, laterTurns }: PlacementResult): number {
  return (hits / laterTurns) * 100;
}

interface Row {
  readonly name: string;
  readonly strategy: Strategy;
  readonly given: Pick<PlacementOptions, "seed"> & Partial<PlacementOptions>;
}

async function printTable(title: string, rows: readonly Row[]): Promise<void> {
  console.log(`\n${title}:\n`);
  console.log(`| | ${cases.map(({ routers, meanRunMs }) => `${routers} routers, ${meanRunMs} ms`).join(" | ")} |`);
  console.log(`|---|${"---|".repeat(cases.length)}`);
  for (const { name, strategy, given } of rows) {
    const cells: string[] = [];
    for (const one of cases) {
      const result = await simulateLoaded(one, 20_000, { ...given, strategy: () => strategy });
      const hit = result.laterTurns > 0 ? ` (${percentHit(result).toFixed(0)})` : "";
      cells.push(`${percentFull(result).toFixed(1)}${hit}`);
    }
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
}

if (import.meta.main) {
  const seed = Number(process.argv[2] ?? 1);
  const conversations = 300;
  const rowsOf = (of: Readonly<Record<string, Strategy>>, given: Row["given"]) =>
    Object.entries(of).map(([name, strategy]) => ({ name, strategy, given }));
  await printTable("Requests that meet a full node, %", rowsOf(strategies, { seed }));
  await printTable(
    "The same for 300 conversations; in brackets: requests that reach the node of the previous request, %",
    rowsOf(affinities, { seed, conversations }),
  );
  await printTable("The same on nodes of 8 and of 24 places in turn", [
    { name: "production", strategy: place, given: { seed, places: unevenPlaces } },
    { name: "production, 300 conversations", strategy: place, given: { seed, places: unevenPlaces, conversations } },
  ]);
}
