/** Tests whole runs, also against runs with rules that are broken on purpose. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";
import type { LoadRequest } from "../load.ts";
import { demandLoad } from "../plan/demand-load.ts";
import { Measured } from "./measured.ts";
import { Simulation, type SimulationOptions } from "./simulation.ts";
import type { TimedEngine, TimedSlotOptions } from "./timed-slot.ts";

const limits: TimedSlotOptions["limits"] = {
  ...{ minResidencyMs: 1_000, drainOpenMsMax: 10_000, waitersMax: 512, waiterMsMax: 300_000 },
  ...{ backoffMsMin: 0, backoffMsMax: 0, startMsMax: Infinity, stopMsMax: Infinity, whileSwitching: "hold" },
};

function engine(model: string, changed: Partial<TimedEngine> = {}): TimedEngine {
  return {
    ...{ model: asId<ModelId>(model), places: 8, startMs: 10_000, stopMs: 1_000 },
    ...{ prefillTokensPerSecond: Infinity, cacheTokens: Infinity },
    step: { baseMs: 10, perRunningMs: 0, perTokenMs: 0 },
    ...changed,
  };
}

function fleet(count: number, slot: Omit<TimedSlotOptions, "name">): SimulationOptions["nodes"] {
  return Array.from({ length: count }, (_, index) => ({
    name: asId<NodeId>(`node-${index + 1}`),
    slots: [{ ...slot, name: asId<SlotName>("a") }],
  }));
}

function measure(options: Pick<SimulationOptions, "nodes" | "load"> & Partial<SimulationOptions>) {
  const simulation = new Simulation({
    ...{ seed: 1, durationMs: 3_600_000, routers: 1, newsMs: 1, retryMs: [1_000, 4_000, 8_000], isFair: true },
    ...options,
  });
  while (simulation.advance(10_000));
  simulation.end();
  const measured = new Measured();
  measured.add(simulation);
  return measured;
}

function demands(models: Record<string, number>, hours: number, seed = 1) {
  const each = { inputTokens: 500, outputTokens: 500, accounts: 20 };
  return demandLoad(
    new Map(Object.entries(models).map(([model, perSecond]) => [model, { ...each, perSecond }])),
    hours * 3_600_000,
    seed,
  );
}

/** Answers of 0.1 s for two models. */
function shortDemands(hours: number) {
  const demand = { perSecond: 0.5, inputTokens: 1, outputTokens: 10, accounts: 20 };
  return demandLoad(
    new Map([
      ["a", demand],
      ["b", demand],
    ]),
    hours * 3_600_000,
    1,
  );
}

describe("two models on one slot", () => {
  const two = { a: 0.2, b: 0.2 };
  const engines = [engine("a"), engine("b")];
  const base = measure({ nodes: fleet(1, { engines, limits }), load: demands(two, 2) });
  const switches = (measured: Measured) => measured.slots[0]!.switches / (measured.totalMs / 3_600_000);

  test("every request is served, and both models have turns", () => {
    for (const model of ["a", "b"]) {
      const { requests, served, gaveUp } = base.of(model);
      expect([served + gaveUp, gaveUp / requests < 0.01]).toEqual([requests, true]);
      expect(base.switches.get(model)!).toBeGreaterThan(10);
    }
  });

  test("the times of a slot add up to at most the whole time", () => {
    const [slot] = base.slots;
    const active = slot!.activeMs.values().reduce((sum, ms) => sum + ms, 0);
    expect(active + slot!.switchMs).toBeLessThanOrEqual(slot!.totalMs);
    expect(active + slot!.switchMs).toBeGreaterThan(0.99 * slot!.totalMs);
  });

  test("without a limit of the drain, the second model waits much longer", () => {
    const endless = { ...limits, drainOpenMsMax: 600_000 };
    const broken = measure({ nodes: fleet(1, { engines, limits: endless }), load: demands({ a: 0.6, b: 0.02 }, 2) });
    const usual = measure({ nodes: fleet(1, { engines, limits }), load: demands({ a: 0.6, b: 0.02 }, 2) });
    expect(broken.of("b").wait.quantileMs(0.99)).toBeGreaterThan(2 * usual.of("b").wait.quantileMs(0.99));
  });

  test("models without a residency switch much more often than with one of five seconds", () => {
    const quick = [engine("a", { startMs: 1_000, stopMs: 0 }), engine("b", { startMs: 1_000, stopMs: 0 })];
    const [none, five] = [0, 5_000].map((minResidencyMs) =>
      measure({ nodes: fleet(1, { engines: quick, limits: { ...limits, minResidencyMs } }), load: shortDemands(1) }),
    );
    expect(switches(none!)).toBeGreaterThan(1.2 * switches(five!));
  });

  test("a slot that admits waiters in random models' turns makes them wait longer", () => {
    const random: typeof transition = (slot, event, nowMs) => {
      const waiters = slot.state.kind === "stopping" ? slot.waiters.toReversed() : slot.waiters;
      return transition({ ...slot, waiters }, event, nowMs);
    };
    const broken = measure({ nodes: fleet(1, { engines, limits, transition: random }), load: demands(two, 2) });
    expect(broken.all.wait.quantileMs(0.99)).toBeGreaterThan(1.2 * base.all.wait.quantileMs(0.99));
  });
});

test("with unbounded waiters nobody is refused in an overload, and everybody waits longer", () => {
  const load = () => demands({ a: 2.5 }, 0.25);
  const one = (waitersMax: number, waiterMsMax: number) =>
    measure({
      ...{ load: load(), retryMs: [] },
      nodes: fleet(1, { engines: [engine("a")], limits: { ...limits, waitersMax, waiterMsMax } }),
    }).of("a");
  const [bounded, unbounded] = [one(32, 60_000), one(1e6, Infinity)];
  expect([bounded.refused > 0, unbounded.refused]).toEqual([true, 0]);
  expect(unbounded.wait.quantileMs(0.99)).toBeGreaterThan(2 * bounded.wait.quantileMs(0.99));
});

describe("a node that fails", () => {
  const options = { engines: [engine("a")], limits, awake: asId<ModelId>("a") };
  const minute = 60_000;
  const run = (failures: SimulationOptions["failures"], nodes = fleet(2, options), perSecond = 0.4) =>
    measure({ nodes, failures, load: demands({ a: perSecond }, 0.5) });
  const node = asId<NodeId>("node-1");

  test("loses its running answers, and its clients and later requests are served by the other node", () => {
    const measured = run([{ node, atMs: 10 * minute }]);
    const { requests, served, broken, gaveUp } = measured.of("a");
    expect(broken).toBeGreaterThan(0);
    expect([served + broken + gaveUp, gaveUp]).toEqual([requests, 0]);
    const [failed, other] = measured.slots;
    expect(failed!.activeMs.get(asId<ModelId>("a"))! / minute).toBeCloseTo(10, 2);
    expect(other!.activeMs.get(asId<ModelId>("a"))).toBe(other!.totalMs);
  });

  test("is noticed within 4 s, and a request that it had not begun is asked of another node", () => {
    const measured = run([{ node, atMs: 10 * minute }], fleet(4, options), 2);
    expect(measured.of("a").wait.maxMs).toBeGreaterThan(500);
    expect(measured.of("a").wait.maxMs).toBeLessThan(4_000);
    expect(measured.of("a").refused).toBe(0);
  });

  test("starts its engine again after it has come back", () => {
    const measured = run([{ node, atMs: 10 * minute, untilMs: 15 * minute }], fleet(1, options));
    const { requests, served, broken, gaveUp, refused } = measured.of("a");
    expect([served + broken + gaveUp, refused > 0, gaveUp > 0]).toEqual([requests, true, true]);
    const [slot] = measured.slots;
    const awayMs = slot!.totalMs - slot!.activeMs.get(asId<ModelId>("a"))!;
    expect(awayMs / minute).toBeGreaterThan(5 + 10 / 60 - 0.01);
    expect(awayMs / minute).toBeLessThan(5.5);
  });
});

test("an account's limits refuse its requests with 429 before they reach a slot", () => {
  const nodes = fleet(1, { engines: [engine("a")], limits });
  const strict = measure({ nodes, load: demands({ a: 1 }, 0.2), limits: { perMinute: 1, parallel: 1 } }).of("a");
  expect([strict.limited > 0, strict.refused]).toEqual([true, 0]);
});

test("the same seed gives the same bytes, however the run is divided, and another seed gives others", () => {
  const engines = [engine("a"), engine("b"), engine("c")];
  const digest = (seed: number, atOnce: number) => {
    const load = demands({ a: 0.5, b: 0.1, c: 0.02 }, 0.5, seed);
    const nodes = fleet(3, { engines, limits });
    const simulation = new Simulation({
      ...{ seed, load, nodes, durationMs: 1_800_000, routers: 3, newsMs: 5, retryMs: [1_000], isFair: true },
    });
    while (simulation.advance(atOnce));
    simulation.end();
    const measured = new Measured();
    measured.add(simulation);
    const told = JSON.stringify([...measured.models, measured.slots.map((slot) => [slot, ...slot.activeMs])]);
    return createHash("sha256").update(told).digest("hex");
  };
  expect(digest(1, 1)).toBe(digest(1, 1_000));
  expect(digest(2, 1_000)).not.toBe(digest(1, 1_000));
});

test("a conversation stays on its node while the node has room", () => {
  const requests: LoadRequest[] = Array.from({ length: 60 }, (_, index) => ({
    ...{ atMs: index * 20_000, account: "one", model: "a", inputTokens: 100, outputTokens: 100 },
    conversation: "same",
  }));
  const nodes = fleet(4, { engines: [engine("a")], limits, awake: asId<ModelId>("a") });
  const simulation = new Simulation({
    ...{ seed: 1, load: requests, nodes, durationMs: 1_200_000, routers: 2, newsMs: 1, retryMs: [], isFair: true },
  });
  while (simulation.advance(10_000));
  const used = simulation.nodes.filter(({ slots }) => slots[0]!.slot.held.size > 0);
  expect(used.length).toBe(1);
});

test("the first switch of a slot that begins with a model counts", () => {
  const nodes = fleet(1, { engines: [engine("a"), engine("b")], limits, awake: asId<ModelId>("a") });
  const load: LoadRequest[] = [{ atMs: 5_000, account: "one", model: "b", inputTokens: 1, outputTokens: 1 }];
  expect(Object.fromEntries(measure({ nodes, load }).switches)).toEqual({ b: 1 });
});

test("a refused client comes back after whole seconds, because retry-after has no others", () => {
  const nodes = fleet(1, { engines: [engine("a")], limits: { ...limits, waitersMax: 1 } });
  const load = [0, 300].map((atMs): LoadRequest => {
    return { atMs, account: "one", model: "a", inputTokens: 1, outputTokens: 1 };
  });
  const simulation = new Simulation({
    ...{ seed: 1, load, nodes, durationMs: 20_000, routers: 1, newsMs: 1, retryMs: [1], isFair: true },
  });
  while (simulation.advance(10_000));
  const { refused, wait } = simulation.tally.of("a");
  expect([refused, (wait.sumMs - 10_000) % 1_000]).toEqual([1, 0]);
});
