/**
 * Tests promise D10 with its limits: the effect of each attack on the pace of good streams and on the router's memory.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Arena } from "../starvation/arena.ts";
import { attacks } from "../starvation/attacks.ts";

const p99GrowthMsMax = 50;
const memoryGrowthMbMax = 200;

let arena: Arena;
beforeAll(async () => void (arena = await Arena.open()));
afterAll(() => arena[Symbol.asyncDispose]());

test.each(attacks)(
  "$name: the p99 gap of good streams grows by at most 50 ms, and none is cut [D10]",
  async (attack) => {
    const outcome = await arena.run([attack], { quietMs: 15_000, attackMs: 30_000 });
    const { quiet, attacked, memoryMb } = outcome;
    console.log(attack.name, JSON.stringify(outcome));
    expect(outcome.mistakes).toEqual([]);
    expect(outcome).toMatchObject({ cut: [], bugs: 0 });
    expect(attacked.p99Ms - quiet.p99Ms).toBeLessThanOrEqual(p99GrowthMsMax);
    const { router } = memoryMb;
    expect(router.peak - router.before).toBeLessThanOrEqual(memoryGrowthMbMax);
  },
);
