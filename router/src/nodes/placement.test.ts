import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import {
  a,
  active,
  b,
  c,
  chosen,
  nodeView,
  nowMs,
  one,
  slotView,
  type SlotGiven,
} from "../../test/nodes/placement-views.ts";
import { SlotState, type NodeView } from "./node-view.ts";
import { place } from "./placement.ts";

/** Best first. Each line must be preferred to every line below it, whatever the names and order of the slots. */
const order: readonly (readonly [string, SlotGiven])[] = [
  [
    "active and open",
    { state: SlotState.ACTIVE, activeModel: a, running: 7, runningOfRouter: 7, inFlight: 7, maxConcurrent: 8 },
  ],
  ["draining, still open", { state: SlotState.DRAINING_OPEN, activeModel: a, nextModel: b, closesInMs: 5_000 }],
  ["already starting the model", { state: SlotState.STARTING, activeModel: a, waiters: { a: 5 } }],
  ["empty", { state: SlotState.EMPTY }],
  ["idle with another model", { state: SlotState.ACTIVE, activeModel: b, idleSinceMs: nowMs - 60_000 }],
  ["active but full", { state: SlotState.ACTIVE, activeModel: a, running: 8, maxConcurrent: 8 }],
  [
    "starting another model, with waiters for this model",
    { state: SlotState.STARTING, activeModel: b, waiters: { a: 2 } },
  ],
  ["busy with another model", { state: SlotState.ACTIVE, activeModel: b, running: 1 }],
  ["starting another model", { state: SlotState.STARTING, activeModel: b }],
  ["closed for the model", { state: SlotState.DRAINING_CLOSED, activeModel: a, nextModel: b }],
  ["failed, in backoff", { state: SlotState.FAILED, activeModel: a, retryInMs: 2_000 }],
];

describe("the state of a slot decides its rank:", () => {
  for (const [index, [better, betterSlot]] of order.entries()) {
    test.each(order.slice(index + 1))(`${better} before %s`, (_worse, worseSlot) => {
      for (const [first, second] of [
        ["x", "y"],
        ["y", "x"],
      ] as const) {
        const nodes = [one(first, betterSlot), one(second, worseSlot)];
        expect(chosen(nodes)).toBe(first);
        expect(chosen(nodes.toReversed())).toBe(first);
      }
    });
  }
});

describe("an engine that serves several models", () => {
  const engines = [{ models: [b, a] }];
  const together: SlotGiven = { engines, activeModel: b, maxConcurrent: 8 };

  test.each<[string, SlotGiven, SlotGiven]>([
    ["is active for each of them", { ...together, state: SlotState.ACTIVE }, { state: SlotState.EMPTY }],
    [
      "counts as starting for each of them",
      { engines, state: SlotState.STOPPING, activeModel: c, nextModel: b },
      { state: SlotState.EMPTY },
    ],
    [
      "starts because of waiters for any of them",
      { engines, state: SlotState.ACTIVE, activeModel: c, running: 1, waiters: { b: 1 } },
      { state: SlotState.ACTIVE, activeModel: c, running: 1 },
    ],
    [
      "has the load of all its models together",
      { ...together, state: SlotState.ACTIVE, running: 1 },
      { ...together, state: SlotState.ACTIVE, running: 6 },
    ],
    [
      "is full when all its models together fill it",
      { state: SlotState.EMPTY },
      { ...together, state: SlotState.ACTIVE, running: 7, waiters: { b: 1 } },
    ],
  ])("%s", (_what, better, worse) => {
    for (const names of [
      ["x", "y"],
      ["y", "x"],
    ] as const)
      expect(chosen([one(names[0], better), one(names[1], worse)])).toBe(names[0]);
  });
});

test.each<[string, SlotGiven, SlotGiven]>([
  [
    "a slot that switches to the model",
    { state: SlotState.STOPPING, activeModel: b, nextModel: a },
    { state: SlotState.EMPTY },
  ],
  [
    "a slot that drains for the model",
    { state: SlotState.DRAINING_CLOSED, activeModel: b, nextModel: a },
    { state: SlotState.EMPTY },
  ],
  [
    "a slot with waiters for the model",
    { state: SlotState.ACTIVE, activeModel: b, running: 3, waiters: { a: 1 } },
    { state: SlotState.EMPTY },
  ],
  [
    "a failed slot whose backoff is over",
    { state: SlotState.FAILED, activeModel: a },
    { state: SlotState.ACTIVE, activeModel: b },
  ],
  [
    "a slot with one running request, before one with two,",
    { state: SlotState.ACTIVE, activeModel: b, running: 1 },
    { state: SlotState.ACTIVE, activeModel: b, running: 2 },
  ],
  [
    "a slot without waiters",
    { state: SlotState.ACTIVE, activeModel: b, running: 9 },
    { state: SlotState.ACTIVE, activeModel: b, running: 1, waiters: { c: 1 } },
  ],
  [
    "the slot with the longest idle time",
    { state: SlotState.ACTIVE, activeModel: b, idleSinceMs: nowMs - 600_000 },
    { state: SlotState.ACTIVE, activeModel: b, idleSinceMs: nowMs - 60_000 },
  ],
  [
    "a replica with room, by the requests of all routers,",
    { state: SlotState.ACTIVE, activeModel: a, running: 3, inFlight: 3, runningOfRouter: 3, maxConcurrent: 4 },
    { state: SlotState.ACTIVE, activeModel: a, running: 2, inFlight: 2, runningOfRouter: 0, maxConcurrent: 4 },
  ],
  [
    "a replica with a free place",
    { state: SlotState.ACTIVE, activeModel: a, running: 3, inFlight: 3, runningOfRouter: 3, maxConcurrent: 4 },
    { state: SlotState.ACTIVE, activeModel: a, running: 1, waiters: { a: 4 }, maxConcurrent: 4 },
  ],
  [
    "an idle slot",
    { state: SlotState.ACTIVE, activeModel: b },
    { state: SlotState.ACTIVE, activeModel: a, running: 2, waiters: { a: 4 }, maxConcurrent: 4 },
  ],
  [
    "the full replica with the fewest waiters per place",
    { state: SlotState.ACTIVE, activeModel: a, running: 8, inFlight: 10, runningOfRouter: 8, maxConcurrent: 8 },
    { state: SlotState.ACTIVE, activeModel: a, running: 2, inFlight: 4, runningOfRouter: 2, maxConcurrent: 2 },
  ],
  [
    "the full replica with the fewest waiters of other routers",
    { state: SlotState.ACTIVE, activeModel: a, running: 2, waiters: { a: 1 }, maxConcurrent: 2 },
    { state: SlotState.ACTIVE, activeModel: a, running: 2, waiters: { a: 9 }, maxConcurrent: 2 },
  ],
])("%s comes first", (_what, better, worse) => {
  expect(chosen([one("x", better), one("y", worse)])).toBe("x");
  expect(chosen([one("y", worse), one("x", better)])).toBe("x");
});

test.each<[string, SlotGiven]>([
  ["drains", { state: SlotState.DRAINING_OPEN, activeModel: b, nextModel: c }],
  ["has closed its drain", { state: SlotState.DRAINING_CLOSED, activeModel: b, nextModel: c }],
  ["stops an engine", { state: SlotState.STOPPING, activeModel: b, nextModel: c }],
  ["starts", { state: SlotState.STARTING, activeModel: c }],
])("requests join the waiters for their model in a slot that %s for another model", (_what, slot) => {
  const waited = one("waited", { ...slot, waiters: { a: 3, c: 1 } });
  const busy = one("busy", { state: SlotState.ACTIVE, activeModel: b, running: 1 });
  expect(chosen([busy, waited])).toBe("waited");
  expect(chosen([busy, one("unwaited", { ...slot, waiters: { c: 1 } })])).toBe("busy");
});

test("an open drain whose time has run out since the report counts as closed", () => {
  const draining = one(
    "x",
    { state: SlotState.DRAINING_OPEN, activeModel: a, nextModel: b, closesInMs: 500 },
    { reportedAtMs: nowMs - 600 },
  );
  expect(chosen([draining, one("y", { state: SlotState.ACTIVE, activeModel: b, running: 5 })])).toBe("y");
});

test("the only slot is chosen even if it is closed or in backoff, because the node knows the right answer", () => {
  expect(chosen([one("x", { state: SlotState.DRAINING_CLOSED, activeModel: a })])).toBe("x");
  expect(chosen([one("x", { state: SlotState.FAILED, activeModel: a, retryInMs: 9_000 })])).toBe("x");
});

test("the least loaded of equal slots wins: own requests count whole, requests of other routers a quarter", () => {
  // The loads are 2 (two own requests), 0.75 (three of others) and 1.25 (one of each).
  const nodes = [
    active("x", { inFlight: 2, running: 2, runningOfRouter: 2 }),
    active("y", { running: 3 }),
    active("z", { inFlight: 1, running: 2, runningOfRouter: 1 }),
  ];
  expect(chosen(nodes)).toBe("y");
});

describe("a report that is 0.5 s old and shows a slot full with requests of other routers", () => {
  const mine = active("mine", { running: 7, runningOfRouter: 7, inFlight: 7 });
  const filled = (oldestRunningMs: number) =>
    active("filled", { running: 8, oldestRunningMs }, { reportedAtMs: nowMs - 500 });

  test("excludes the slot while these requests probably still run", () => {
    expect(chosen([mine, filled(60_000)])).toBe("mine");
  });

  test("does not exclude the slot once these requests have probably ended", () => {
    expect(chosen([mine, filled(1_000)])).toBe("filled");
  });

  test("makes another engine start if no running engine has room, even if these requests have probably ended", () => {
    expect(chosen([filled(1_000), one("empty", {})])).toBe("empty");
  });
});

test("with one router, its own requests in flight decide whether a slot is full, not the report", () => {
  const old = { reportedAtMs: nowMs - 900 };
  const slot = (reported: number, inFlight: number) =>
    active("x", { running: reported, runningOfRouter: reported, inFlight, oldestRunningMs: 60_000 }, old);
  expect(chosen([slot(3, 8), one("empty", {})])).toBe("empty");
  expect(chosen([slot(8, 7), one("empty", {})])).toBe("x");
  expect(chosen([slot(3, 8), active("y", { inFlight: 7 })])).toBe("y");
});

test("slots of different sizes fill evenly: the slot wins that would be the least full with the request", () => {
  // With the request: 1 of 2, 6 of 16, 7 of 16.
  const nodes = [
    active("x", { maxConcurrent: 2 }),
    active("y", { inFlight: 5, maxConcurrent: 16 }),
    active("z", { inFlight: 6, maxConcurrent: 16 }),
  ];
  expect(chosen(nodes)).toBe("y");
});

test("chance decides between equal slots", () => {
  const nodes = ["x", "y", "z"].map((name) => active(name));
  const random = createRandom(7);
  const counts = new Map<string, number>();
  for (let i = 0; i < 3_000; i++) {
    const { node } = place({ model: a }, nodes, nowMs, () => random.next()) as { node: NodeId };
    counts.set(node, (counts.get(node) ?? 0) + 1);
  }
  for (const name of ["x", "y", "z"]) expect(counts.get(name)).toBeGreaterThan(900);
});

test("the refusal distinguishes no node for the model from nodes in maintenance", () => {
  expect(chosen([])).toBe("no_node_available");
  expect(chosen([one("x", { models: [b] })])).toBe("no_node_available");
  expect(chosen([one("x", {}, { maintenance: true })])).toBe("maintenance");
  expect(chosen([one("x", {}, { maintenance: true, reachable: false })])).toBe("no_node_available");
  expect(
    chosen([one("x", {}, { maintenance: true }), one("y", { state: SlotState.DRAINING_CLOSED, activeModel: a })]),
  ).toBe("y");
});

test("the refusal without a node contains how long the model's last node has been away", () => {
  const gone = (name: string, agoMs: number, models = [a]) =>
    one(name, { models }, { reachable: false, reportedAtMs: nowMs - agoMs });
  const refusalOf = (nodes: readonly NodeView[], exclude?: ReadonlySet<NodeId>) =>
    place({ model: a }, nodes, nowMs, () => 0, exclude);
  const nodes = [gone("x", 9_000), gone("y", 4_000), gone("z", 1_000, [b])];
  expect(refusalOf(nodes)).toEqual({ refused: "no_node_available", awayMs: 4_000 });
  expect(refusalOf(nodes, new Set([nodes[1]!.node]))).toEqual({ refused: "no_node_available", awayMs: 9_000 });
  expect(refusalOf([gone("z", 1_000, [b])])).toEqual({ refused: "no_node_available" });
});

const slotArbitrary = fc.record(
  {
    kind: fc.constantFrom("empty", "starting", "active", "draining-open", "draining-closed", "stopping", "failed"),
    active: fc.constantFrom(a, b, c),
    next: fc.constantFrom(a, b, c),
    models: fc.subarray([a, b, c]),
    running: fc.nat(10),
    runningOfRouter: fc.nat(10),
    inFlight: fc.nat(10),
    maxConcurrent: fc.integer({ min: 1, max: 12 }),
    closesInMs: fc.nat(10_000),
    retryInMs: fc.nat(10_000),
    idleSinceMs: fc.integer({ min: 0, max: nowMs }),
  },
  { requiredKeys: ["kind", "models"] },
);
const nodesArbitrary = fc
  .array(
    fc.record({
      slots: fc.array(slotArbitrary, { maxLength: 3 }),
      reachable: fc.boolean(),
      admitting: fc.boolean(),
      maintenance: fc.boolean(),
    }),
    { maxLength: 5 },
  )
  .map((nodes) =>
    nodes.map(({ slots, ...given }, n) =>
      nodeView(
        `n${n}`,
        slots.map((slot, s) => slotView({ ...slot, name: asId<SlotName>(`s${s}`) })),
        given,
      ),
    ),
  );
const excludeArbitrary = fc
  .subarray(["n0", "n1", "n2"])
  .map((names) => new Set(names.map((name) => asId<NodeId>(name))));

test("property: a node is chosen unless it is unreachable, excluded, not admitting or in maintenance", () => {
  fc.assert(
    fc.property(nodesArbitrary, excludeArbitrary, fc.option(fc.string()), fc.nat(), (nodes, exclude, key, seed) => {
      const random = createRandom(seed);
      const request = { model: a, ...(key === null ? {} : { affinityKey: key }) };
      const placement = place(request, nodes, nowMs, () => random.next(), exclude);
      const eligible = nodes.filter(
        (node) =>
          node.reachable &&
          node.admitting &&
          !node.maintenance &&
          !exclude.has(node.node) &&
          node.slots.some((slot) => slot.models.includes(a)),
      );
      const isChosen = ({ node, slots }: NodeView) =>
        "node" in placement &&
        placement.node === node &&
        slots.find((slot) => slot.name === placement.slot)!.models.includes(a);
      expect(eligible.filter(isChosen)).toHaveLength(Math.min(eligible.length, 1));
    }),
    { numRuns: 2_000 },
  );
});
