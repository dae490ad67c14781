/**
 * All attacks at once, for ten minutes beside eight good streams. `WEICHE_SECONDS` sets another time. Attackers take what
 * router, agent, engine and clients leave of the processors; set `WEICHE_ATTACKERS=low` on a machine with other work, which
 * would leave nothing. Each attack alone: `starvation.nightly.test.ts`.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Arena } from "../starvation/arena.ts";
import { attacks } from "../starvation/attacks.ts";
import { answerMs } from "../starvation/many-answers.ts";

const attackMs = Number(process.env["WEICHE_SECONDS"] ?? 600) * 1_000;
const quietMs = Math.min(60_000, attackMs / 2);
const share = process.env["WEICHE_ATTACKERS"] === "low" ? "low" : "idle";

const p99GrowthMsMax = 50;
/** Whoever waits for a place waits for the end of one answer, on a machine that is busy. */
const startMsMax = 1.5 * answerMs;
/**
 * Resident memory may grow by this much. Router: 64 MiB for the hash of a password, 100 MB of bodies, messages and
 * connections that these attackers may hold, and as much again that V8 has not collected. Agent: two accounts may leave
 * 102 MiB of answers unread, and as much again.
 */
const memoryGrowthMbMax = { router: 400, agent: 300 };
/** After the attacks, in what is left after garbage collection: caches of the accounts and addresses that came. */
const keptGrowthMbMax = 30;

let arena: Arena;
beforeAll(async () => void (arena = await Arena.open()));
afterAll(() => arena[Symbol.asyncDispose]());

test(
  "all attacks at once: the p99 gap of good streams grows by 50 ms at most, none is cut, memory is bounded and comes back, and everybody is billed for what was made",
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
