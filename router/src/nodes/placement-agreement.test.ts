/** Tests where conversations stay and where engines start. Every router must choose alike. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { a, active, b, chosen, nowMs, one, type SlotGiven } from "../../test/nodes/placement-views.ts";
import { SlotState } from "./node-view.ts";
import { place } from "./placement.ts";

test("property: one hot prefix never fills a node while another idles", () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 2, max: 8 }), fc.nat(60), (affinityKey, count, requests) => {
      const inFlight = Array.from({ length: count }, () => 0);
      for (let i = 0; i < requests; i++) {
        const nodes = inFlight.map((n, index) => active(`${index}`, { inFlight: n, maxConcurrent: 100 }));
        const { node } = place({ model: a, affinityKey }, nodes, nowMs, () => 0) as { node: NodeId };
        inFlight[Number(node)]!++;
      }
      expect(Math.max(...inFlight)).toBeLessThanOrEqual(1.25 * ((requests + 1) / count) + 1);
    }),
  );
});

test("a prefix stays on its node while the nodes are evenly loaded, and prefixes spread over the nodes", () => {
  const even = (inFlight: number) => ["x", "y", "z"].map((name) => active(name, { inFlight }));
  const homes = new Map<string, number>();
  for (let i = 0; i < 300; i++) {
    const home = chosen(even(0), { affinityKey: `conversation ${i}` });
    expect(chosen(even(6).toReversed(), { affinityKey: `conversation ${i}` })).toBe(home);
    homes.set(home, (homes.get(home) ?? 0) + 1);
  }
  for (const name of ["x", "y", "z"]) expect(homes.get(name)).toBeGreaterThan(60);
});

test("slots are the home of prefixes in proportion to their places", () => {
  const nodes = [active("x", { maxConcurrent: 8 }), active("y", { maxConcurrent: 24 })];
  const homes = Array.from({ length: 1_000 }, (_, i) => chosen(nodes, { affinityKey: `conversation ${i}` }));
  expect(homes.filter((home) => home === "y").length).toBeGreaterThan(700);
  expect(homes.filter((home) => home === "y").length).toBeLessThan(800);
});

describe("a prefix whose home has 15 of 16 places taken, while another slot has 13,", () => {
  const affinityKey = Array.from({ length: 100 }, (_, i) => `conversation ${i}`).find(
    (key) => chosen([active("x"), active("y")], { affinityKey: key }) === "x",
  )!;
  const placed = (slot: (taken: number) => SlotGiven, ageMs: number) =>
    chosen(
      [["x", 15] as const, ["y", 13] as const].map(([name, taken]) =>
        active(name, { maxConcurrent: 16, oldestRunningMs: 2_000, ...slot(taken) }, { reportedAtMs: nowMs - ageMs }),
      ),
      { affinityKey },
    );
  const others = (running: number) => ({ running });
  const own = (inFlight: number) => ({ running: inFlight, runningOfRouter: inFlight, inFlight });

  test("stays while the load of other routers there is known", () => {
    expect(placed(others, 10)).toBe("x");
  });

  test("leaves if other routers may have sent more requests since the report", () => {
    expect(placed(others, 900)).toBe("y");
  });

  test("stays if no other router sends requests", () => {
    expect(placed(own, 900)).toBe("x");
  });
});

test.each<[string, SlotGiven]>([
  ["start", { state: SlotState.EMPTY }],
  ["switch", { state: SlotState.ACTIVE, activeModel: b }],
  ["drain", { state: SlotState.ACTIVE, activeModel: b, running: 2 }],
])("where an engine would %s, all routers choose the same slot, and models spread over the slots", (_what, given) => {
  const names = ["n1", "n2", "n3", "n4", "n5"];
  const homes = new Set<string>();
  for (let m = 0; m < 40; m++) {
    const model = asId<ModelId>(`model-${m}`);
    const homesOfModel = new Set<string>();
    for (let router = 0; router < 10; router++) {
      const random = createRandom(router);
      // Each router sees the nodes in its own order, has its own requests in flight, and saw the slot become idle at
      // its own time.
      const nodes = names.map((name) =>
        one(name, {
          ...given,
          models: [model],
          inFlight: random.below(5),
          idleSinceMs: nowMs - 10_000 - random.below(900),
        }),
      );
      const shuffled = nodes.sort(() => random.next() - 0.5);
      const placement = place({ model, affinityKey: `router ${router}` }, shuffled, nowMs, () => random.next());
      homesOfModel.add((placement as { node: NodeId }).node);
    }
    expect(homesOfModel.size).toBe(1);
    for (const home of homesOfModel) homes.add(home);
  }
  expect(homes.size).toBe(names.length);
});
