import { expect, it } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { range, recorder } from "../../test/outbox/outbox-steps.ts";
import { Database, SimulatedRouter } from "../../test/outbox/simulated-router.ts";
import { SimulatedDisk } from "../../test/outbox/simulated-disk.ts";
import { usageRecord } from "../../test/outbox/usage-records.ts";
import { UsageDelivery } from "./delivery.ts";
import { openOutbox, outboxLimits } from "./outbox.ts";

it("every record is delivered at least once, whatever links and routers do", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = createRandom(seed);
    const run = await simulation(random.below(2 ** 31));
    expect(run.missing).toEqual([]);
    expect(run.depth).toBe(0);
  }
});

/** Runs two routers that commit or not, and acknowledge late, twice or never, with links that come and go. */
async function simulation(seed: number): Promise<{ missing: number[]; depth: number }> {
  const random = createRandom(seed);
  const time = new VirtualClock();
  const box = await openOutbox(new SimulatedDisk(), time, recorder(), {
    ...outboxLimits,
    segmentBytesMax: 2_000,
    reserveBytes: 4_096,
  });
  const sender = new UsageDelivery(box, time, {
    usageDelivered() {},
    usageNotAcknowledged() {},
    usageSentAgain() {},
    usageUnreadable() {},
  });
  const store = new Database();
  let well = false;
  const routers = ["a", "b"].map((routerId) => {
    const router = new SimulatedRouter(routerId, store, time, () => {});
    router.answer = (commit, batchId) => {
      if (!well && random.chance(0.3)) return;
      commit();
      for (let times = well ? 1 : random.below(3); times > 0; times--)
        time.after(well ? 1 : random.below(25_000), () => sender.acknowledged(routerId, batchId));
    };
    return router;
  });
  const up = new Set<SimulatedRouter>();
  const toggle = (router: SimulatedRouter, on: boolean) => {
    if (on === up.has(router)) return;
    if (on) sender.linkUp(router);
    else sender.linkDown(router.routerId);
    if (on) up.add(router);
    else up.delete(router);
  };
  let count = 0;
  for (let step = 0; step < 60; step++) {
    for (let records = random.below(30); records > 0; records--) void box.append(usageRecord(count++));
    for (const router of routers) if (random.chance(0.3)) toggle(router, random.chance(0.6));
    if (random.chance(0.03)) sender.committedTo(`after step ${step}`);
    await time.advanceAsync(random.below(4_000));
  }
  well = true;
  for (const router of routers) toggle(router, true);
  await time.advanceAsync(60_000);
  const missing = range(0, count).filter((number) => !store.committed.has(number));
  const { depth } = box;
  sender[Symbol.dispose]();
  await box[Symbol.asyncDispose]();
  return { missing, depth };
}
