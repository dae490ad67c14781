/** Tests that limits of accounts over three router processes are exact and still apply when the store is killed. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { faults, meetFault } from "./store-faults.ts";
import { leaveAll, outcomes, running, SharedLimits } from "./shared-limits.ts";

describe("three routers with one store", needs("valkey-server"), () => {
  let limits: SharedLimits;
  beforeAll(async () => {
    limits = await SharedLimits.start();
  });
  afterAll(() => limits[Symbol.asyncDispose]());

  test("admit exactly 10 of 100 simultaneous requests, and exactly 60 in a minute [B4]", async () => {
    const seen = await limits.shared(async () => {
      const apiKey = await limits.account("Both");
      const held = await limits.ask(apiKey, 100);
      await leaveAll(held);
      let admitted = running(held).length;
      for (;;) {
        const wave = await limits.ask(apiKey, 60, [0, 1, 2], 1);
        await leaveAll(wave);
        admitted += running(wave).length;
        if (outcomes(wave).minute === 60) return { atOnce: outcomes(held), admitted };
      }
    });
    expect(seen).toEqual({ atOnce: { running: 10, parallel: 90 }, admitted: 60 });
    expect(await limits.group.weiche(1, "status")).toMatchObject({ limitStore: { address: limits.store.url } });
  });

  test("continue within limits when the store is killed and starts again [B4]", async () => {
    expect(await meetFault(limits, faults["is killed and starts again"])).toEqual([]);
  });
});
