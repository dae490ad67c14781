/**
 * Runs all attacks at once for ten minutes beside eight good streams. `WEICHE_SECONDS` sets another time. Attackers use
 * the processor time that router, agent, engine and clients leave. On a machine with other work they would get none:
 * set `WEICHE_ATTACKERS=low` there. `starvation.nightly.test.ts` runs each attack alone.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Arena } from "../starvation/arena.ts";
import { attacks } from "../starvation/attacks.ts";
import { answerMs } from "../starvation/many-answers.ts";

const attackMs = Number(process.env["WEICHE_SECONDS"] ?? 600) * 1_000;
const quietMs = Math.min(60_000, attackMs / 2);
const share = process.env["WEICHE_ATTACKERS"] === "low" ? "low" : "idle";

const p99GrowthMsMax = 50;
/** A request that waits for a place waits for the end of one answer, on a busy machine. */
const startMsMax = 1.5 * answerMs;
/**
 * The most by which resident memory may grow. Router: 64 MB for a password hash, 150 MB of bodies that these attackers may
 * hold, 50 MB of connections and messages, and as much again that V8 and the C library have not released. Agent: two
 * accounts may leave 102 MB of answers unread, and as much again.
 */
const memoryGrowthMbMax = { router: 500, agent: 300 };
/** The most by which memory after garbage collection may grow: the caches for the attackers' accounts and addresses. */
const keptGrowthMbMax = 30;

let arena: Arena;
beforeAll(async () => void (arena = await Arena.open()));
afterAll(() => arena[Symbol.asyncDispose]());

test(
  "under all attacks at once, the p99 gap of good streams grows by at most 50 ms, none is cut, memory is bounded and freed, and bills are right [D10]",
  async () => {
    const keptBefore = await arena.keptMb();
    const outcome = await arena.run(attacks, { quietMs, attackMs, share });
    const kept = await arena.keptMb();
    const billFaults = await arena.billFaults();
    console.log(JSON.stringify({ ...outcome, keptBefore, kept, billFaults: billFaults.slice(0, 20) }, undefined, 1));
    const { quiet, attacked, mistakes, cut, bugs, memoryMb } = outcome;
    expect({ mistakes, cut, bugs, billFaults }).toEqual({ mistakes: [], cut: [], bugs: 0, billFaults: [] });
    expect(attacked.startMaxMs).toBeLessThanOrEqual(startMsMax);
    const { router, agent } = memoryMb;
    expect(router.peak - router.before).toBeLessThanOrEqual(memoryGrowthMbMax.router);
    expect(agent.peak - agent.before).toBeLessThanOrEqual(memoryGrowthMbMax.agent);
    expect(kept.router - keptBefore.router).toBeLessThanOrEqual(keptGrowthMbMax);
    expect(kept.agent - keptBefore.agent).toBeLessThanOrEqual(keptGrowthMbMax);
    expect(attacked.p99Ms - quiet.p99Ms).toBeLessThanOrEqual(p99GrowthMsMax);
  },
  quietMs + attackMs + 300_000,
);
