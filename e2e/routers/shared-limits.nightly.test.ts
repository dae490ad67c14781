/**
 * Tests limits of accounts over three routers when one is killed, through every fault of their store, and in the minute
 * after it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { faults, meetFault } from "./store-faults.ts";
import { leaveAll, outcomes, running, SharedLimits } from "./shared-limits.ts";

describe("three routers with one store", needs("valkey-server"), () => {
  let limits: SharedLimits;
  beforeAll(async () => {
    limits = await SharedLimits.start();
  });
  afterAll(() => limits[Symbol.asyncDispose]());
  let isWhole = true;
  afterEach(makeWhole);

  /** Restarts a router that a test has killed. */
  async function makeWhole(): Promise<void> {
    if (!isWhole) await limits.group.startAt(2);
    isWhole = true;
    await limits.group.linked();
  }

  test("keep the limit when one router is killed, free its places within 15 s, and continue the streams of the others [B4]", async () => {
    const { group } = limits;
    const seen = await limits.shared(async () => {
      await makeWhole();
      const apiKey = await limits.account("Both");
      const doomed = running(await limits.ask(apiKey, 3, [2]));
      const held = [...doomed, ...running(await limits.ask(apiKey, 500))];
      const atOnce = held.length;
      group.routers[2]!.kill("SIGKILL");
      isWhole = false;
      const deadlineMs = performance.now() + 15_000;
      const lost = held.filter(({ router }) => router === 2);
      const endings = await Promise.all(lost.map(async ({ answer }) => (await answer).ending));
      const kept = held.filter(({ router }) => router !== 2);
      const before = kept.map((each) => each.pieces());
      for (let isLast = false; kept.length < atOnce && !isLast; await sleep(300)) {
        isLast = performance.now() > deadlineMs;
        kept.push(...running(await limits.ask(apiKey, 10, [0, 1])));
      }
      const stuck = kept.filter((each, index) => each.isOver || each.pieces() <= (before[index] ?? 0));
      const beyond = running(await limits.ask(apiKey, 4, [0, 1]));
      await leaveAll([...kept, ...beyond]);
      return { atOnce, endings: new Set(endings), again: kept.length, stuck, beyond: beyond.length };
    });
    expect(seen).toEqual({ atOnce: 10, endings: new Set(["broken"]), again: 10, stuck: [], beyond: 0 });
  });

  /** Sends many requests at once until the limit per minute refuses each. Returns the number of admitted requests. */
  async function useUp(apiKey: string): Promise<number> {
    let admitted = 0;
    for (;;) {
      const wave = await limits.ask(apiKey, 300, [0, 1, 2], 1);
      await leaveAll(wave);
      admitted += running(wave).length;
      if (outcomes(wave).minute === 300) return admitted;
    }
  }

  for (const [name, fault] of Object.entries(faults)) {
    test(`continue within limits when the store ${name}`, async () => {
      expect(await meetFault(limits, fault)).toEqual([]);
    });

    test(`admit exactly 60 in the minute that begins a minute after the store ${name}`, async () => {
      const apiKey = await limits.account("Minute");
      expect(await limits.shared(() => limits.ask(apiKey, 30, [0, 1, 2], 1)).then(outcomes)).toEqual({ running: 30 });
      await fault.begin(limits.store);
      // No router allows more than the limit, whatever data the store has.
      const meanwhile = await useUp(apiKey);
      expect(meanwhile).toBeLessThanOrEqual(150);
      await fault.end(limits.store);
      const seen = await limits.shared(async () => {
        await new Promise((resolve) => setTimeout(resolve, 60_000));
        return await useUp(apiKey);
      });
      expect(seen).toBe(60);
    });
  }
});
