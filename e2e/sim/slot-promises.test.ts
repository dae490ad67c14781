/** Tests the promises about switches, on virtual time and in plain numbers. */
import { describe, expect, test } from "vitest";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { WireState } from "@weiche/node-agent/src/slots/slot-view.ts";
import { noFaults } from "./sim-host.ts";
import { SlotWorld, type Visit, usualLimits } from "./slot-world.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => asId<ModelId>(name)) as [ModelId, ModelId, ModelId];
const startMs = 4_000;
const stopMs = 1_000;

function world(seed = 1, sleeping: readonly ModelId[] = [a]): SlotWorld {
  return new SlotWorld({
    seed,
    models: new Map([a, b, c].map((model) => [model, { sleeps: sleeping.includes(model), places: 64 }])),
    limits: usualLimits,
    times: {
      startMs: [startMs, startMs + 1],
      wakeMs: [startMs, startMs + 1],
      stopMs: [stopMs, stopMs + 1],
      probeMs: [10, 20],
      newsMs: [0, 1],
      crashMs: [1, 2],
      lateMs: [0, 1],
    },
    faults: noFaults,
    longestRunMs: 120_000,
  });
}

/** Sends a client every `gapMs` for `forMs`. */
function load(world: SlotWorld, visit: Visit, gapMs: number, forMs: number): void {
  const endMs = world.clock.monotonicMs() + forMs;
  const next = () => {
    world.visit(visit);
    if (world.clock.monotonicMs() + gapMs < endMs) world.clock.after(gapMs, next);
  };
  next();
}

async function pass(world: SlotWorld, ms: number): Promise<void> {
  await world.advanceTo(world.clock.monotonicMs() + ms);
  expect(world.rules.broken).toBeUndefined();
}

describe("under constant load on one model", () => {
  test("the first request for another model is served within 10 s plus the longest running request plus the switch [B1 S17.3]", async () => {
    const slot = world();
    load(slot, { model: a, runMs: 3_000 }, 100, 200_000);
    await pass(slot, 30_000);
    slot.visit({ model: a, runMs: 60_000 });
    await pass(slot, 5_000);
    const first = slot.visit({ model: b, runMs: 1_000 });
    await pass(slot, 60_000 + stopMs + startMs);
    expect(first.answer?.kind).toBe("admitted");
    // The long request had 55 s left, because the drain closed before its end.
    expect(first.answer!.atMs - first.sinceMs).toBe(55_000 + stopMs + startMs + 1);
  });

  test("with short requests, the first request for another model is served within 10 s plus the switch [B1]", async () => {
    const slot = world();
    load(slot, { model: a, runMs: 500 }, 100, 200_000);
    await pass(slot, 30_000);
    const first = slot.visit({ model: b, runMs: 1_000 });
    await pass(slot, 20_000);
    expect(first.answer!.atMs - first.sinceMs).toBeLessThanOrEqual(10_000 + 500 + stopMs + startMs + 1);
  });

  test("all models get their turns [B1]", async () => {
    const slot = world();
    load(slot, { model: a, runMs: 500 }, 100, 300_000);
    load(slot, { model: b, runMs: 500 }, 100, 300_000);
    await pass(slot, 60_000);
    const third = slot.visit({ model: c, runMs: 1_000 });
    await pass(slot, 60_000);
    expect(third.answer?.kind).toBe("admitted");
  });
});

test("under alternating load a slot switches no more often than its minimum residency allows", async () => {
  const slot = world();
  await pass(slot, 1_000);
  load(slot, { model: a, runMs: 100 }, 500, 600_000);
  load(slot, { model: b, runMs: 100 }, 500, 600_000);
  await pass(slot, 600_000);
  const turnMs = usualLimits.minResidencyMs + stopMs + startMs;
  expect(slot.host.activations).toBeLessThanOrEqual(Math.ceil(600_000 / turnMs));
  expect(slot.host.activations).toBeGreaterThan(30);
});

test("repeated kills of an agent restart no engine [C3]", async () => {
  const slot = world();
  load(slot, { model: a, runMs: 700 }, 300, 120_000);
  await pass(slot, 20_000);
  expect(slot.host.activations).toBe(1);
  for (let kill = 0; kill < 50; kill++) {
    slot.killAgent();
    await pass(slot, 1_000 + 37 * kill);
    expect(slot.agent.slots.views()[0]!.state).toBe(WireState.ACTIVE);
  }
  expect(slot.host.activations).toBe(1);
});

test("a kill of the agent at any moment of a switch leaves one engine awake in the end [C3]", async () => {
  for (let atMs = 0; atMs < 20_000; atMs += 250) {
    const slot = world();
    slot.visit({ model: a, runMs: 2_000 });
    await pass(slot, 5_000);
    slot.visit({ model: b, runMs: 2_000 });
    await pass(slot, atMs);
    slot.killAgent();
    const request = slot.visit({ model: b, runMs: 100 });
    await pass(slot, 30_000);
    expect(request.answer?.kind).toBe("admitted");
    expect(slot.host.occupants.length).toBe(1);
  }
});

test("a kill of the agent at any moment of a cold start repeats no start and loses no time [C3]", async () => {
  for (let atMs = 0; atMs < startMs; atMs += 250) {
    const slot = world();
    slot.visit({ model: b, runMs: 2_000 });
    const beganMs = slot.clock.monotonicMs();
    await pass(slot, atMs);
    slot.killAgent();
    const request = slot.visit({ model: b, runMs: 100 });
    await pass(slot, 2 * startMs);
    expect([request.answer?.kind, slot.host.coldStarts]).toEqual(["admitted", 1]);
    expect(request.answer!.atMs - beganMs).toBeLessThanOrEqual(startMs + 50);
  }
});

test("a kill of the agent at any moment of a switch between sleeping engines restarts neither", async () => {
  for (let atMs = 0; atMs < 20_000; atMs += 250) {
    const slot = world(1, [a, b]);
    for (const model of [a, b, a]) {
      slot.visit({ model, runMs: 2_000 });
      await pass(slot, 20_000);
    }
    slot.visit({ model: b, runMs: 2_000 });
    await pass(slot, atMs);
    slot.killAgent();
    const last = slot.visit({ model: b, runMs: 100 });
    await pass(slot, 30_000);
    expect([last.answer?.kind, slot.host.coldStarts]).toEqual(["admitted", 2]);
    expect(slot.host.occupants.map(({ model }) => model)).toEqual([b]);
  }
});
