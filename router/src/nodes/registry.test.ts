import { beforeEach, describe, expect, test } from "vitest";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { SlotState, type NodeHello, type NodeView, type SlotReport } from "./node-view.ts";
import { modelState } from "./model-state.ts";
import { place } from "./placement.ts";
import { NodeRegistry } from "./registry.ts";

const node = asId<NodeId>("gpu-1");
const slot = asId<SlotName>("s");
const model = asId<ModelId>("m");
const hello: NodeHello = { node, bootId: "1", agentVersion: "0", slots: [{ name: slot, models: [model] }] };

function report(given: Partial<SlotReport> = {}) {
  const idle: SlotReport = {
    name: slot,
    state: SlotState.ACTIVE,
    activeModel: model,
    running: 0,
    runningOfRouter: 0,
    waiters: [],
    stateAgeMs: 0,
  };
  return { slots: [{ ...idle, ...given }], maintenance: false, admitting: true };
}

let registry: NodeRegistry;
beforeEach(() => {
  registry = new NodeRegistry();
});
const look = (nowMs: number): NodeView => registry.view(nowMs)[0]!;

describe("a node is reachable", () => {
  test("only with a link, a fresh report and a data connection", () => {
    expect(registry.view(0)).toEqual([]);
    const link = registry.linkUp(hello, 0);
    expect(look(0).reachable).toBe(false);
    link.report(report(), 0);
    expect(look(0).reachable).toBe(false);
    registry.connectionUp(node);
    expect(look(0).reachable).toBe(true);
    registry.connectionDown(node);
    expect(look(0).reachable).toBe(false);
  });

  test("without a gap when its agent links anew, but only from its first report when the agent has restarted", () => {
    registry.linkUp(hello, 0).report(report(), 0);
    registry.connectionUp(node);
    registry.linkUp(hello, 0);
    expect(look(1)).toMatchObject({ reachable: true, slots: [{ name: slot }] });
    registry.linkUp({ ...hello, bootId: "2" }, 0);
    expect(look(2)).toMatchObject({ reachable: false, slots: [] });
  });

  test.each([3_000, 5_000, 8_000])(
    "after the router's event loop was blocked for %s ms, before waiting reports are read",
    (ms) => {
      const clock = new VirtualClock();
      using linkClock = new LoopClock(clock);
      const link = registry.linkUp(hello, 0);
      registry.connectionUp(node);
      link.report(report(), linkClock.monotonicMs());
      clock.advance(900);
      clock.stall(ms);
      expect(look(linkClock.monotonicMs()).reachable).toBe(true);
      clock.advance(3_000);
      expect(look(linkClock.monotonicMs()).reachable).toBe(false);
    },
  );

  test("until it is silent for 3 s, and again from its next report", () => {
    const link = registry.linkUp(hello, 0);
    registry.connectionUp(node);
    link.report(report(), 1_000);
    expect(look(4_000).reachable).toBe(true);
    expect(look(4_001).reachable).toBe(false);
    link.report(report(), 5_000);
    expect(look(5_000).reachable).toBe(true);
  });

  test("until its link resets", () => {
    const link = registry.linkUp(hello, 0);
    registry.connectionUp(node);
    link.report(report(), 0);
    link.down(1);
    expect(look(1).reachable).toBe(false);
  });
});

test("a replaced link changes nothing any more", () => {
  const old = registry.linkUp(hello, 0);
  const link = registry.linkUp({ ...hello, bootId: "2" }, 0);
  registry.connectionUp(node);
  link.report(report(), 0);
  old.report(report({ state: SlotState.FAILED }), 1);
  old.down(2);
  expect(look(3)).toMatchObject({ reachable: true, slots: [{ state: SlotState.ACTIVE }] });
});

test("requests in flight are counted at dispatch, settled once, and survive reports and links", () => {
  const link = registry.linkUp(hello, 0);
  link.report(report(), 0);
  const one = registry.dispatched(node, slot);
  const both = registry.dispatched(node, slot, 2);
  expect(look(0).slots[0]!.inFlight, "two requests, one of them for two answers").toBe(3);
  both.over();
  registry.dispatched(node, slot);
  link.report(report({ running: 2, runningOfRouter: 2 }), 1);
  expect(look(1).slots[0]!.inFlight).toBe(2);
  link.down(2);
  registry.linkUp({ ...hello, bootId: "2" }, 0).report(report(), 3);
  expect(look(3).slots[0]!.inFlight).toBe(2);
  one.over();
  one.over();
  expect(look(4).slots[0]!.inFlight).toBe(1);
});

test("an answer that only its client keeps open holds no place, so the next request starts no other slot", () => {
  const link = registry.linkUp(hello, 0);
  registry.connectionUp(node);
  link.report(report({ activeModel: model, maxConcurrent: 2 }), 0);
  const spare = asId<NodeId>("spare");
  registry.linkUp({ ...hello, node: spare }, 0).report(report({ state: SlotState.EMPTY }), 0);
  registry.connectionUp(spare);
  const chosen = () => place({ model }, registry.view(1), 1, () => 0);
  const sent = [registry.dispatched(node, slot), registry.dispatched(node, slot)];
  expect(chosen()).toMatchObject({ node: spare });
  for (const one of sent) one.done();
  expect(chosen()).toMatchObject({ node });
  expect(look(1).slots[0]).toMatchObject({ inFlight: 0, unread: 2 });
  link.report(report({ activeModel: model, maxConcurrent: 2 }), 2);
  for (const one of sent) one.over();
  sent[0]!.done();
  expect(look(3).slots[0], "the client has read everything").toMatchObject({ inFlight: 0, unread: 0 });
});

test("a slot is idle from the first report without work until it has work or its model changes", () => {
  const link = registry.linkUp(hello, 0);
  const idleSince = (given: Partial<SlotReport>, nowMs: number) => {
    link.report(report(given), nowMs);
    return look(nowMs).slots[0]!.idleSinceMs;
  };
  expect(idleSince({}, 1)).toBe(1);
  expect(idleSince({}, 2)).toBe(1);
  expect(idleSince({ running: 1 }, 3)).toBeUndefined();
  expect(idleSince({}, 4)).toBe(4);
  expect(idleSince({ waiters: [{ model, waiting: 2 }] }, 5)).toBeUndefined();
  expect(look(5).slots[0]!.waiting).toBe(2);
  expect(idleSince({}, 6)).toBe(6);
  expect(idleSince({ activeModel: asId<ModelId>("other") }, 7)).toBe(7);
});

describe("a lost node is known", () => {
  const hourMs = 3_600_000;

  test("for a week", () => {
    const link = registry.linkUp(hello, 0);
    link.report(report(), 0);
    link.down(1_000);
    const gone = [{ hello, linked: false, dataConnections: 0, view: { reachable: false } }];
    expect(registry.details(2_000)).toMatchObject(gone);
    expect(registry.details(7 * 24 * hourMs)).toMatchObject(gone);
    expect(registry.details(7 * 24 * hourMs + 1_001)).toEqual([]);
  });

  test("for an hour if it left in maintenance", () => {
    const link = registry.linkUp(hello, 0);
    link.report({ ...report(), maintenance: true }, 0);
    link.down(1_000);
    expect(registry.details(hourMs)).toHaveLength(1);
    expect(registry.details(hourMs + 1_001)).toEqual([]);
  });

  test("for an hour only, once operators have put it into maintenance", () => {
    const wished = new Set<string>();
    const registry = new NodeRegistry((node) => wished.has(node));
    registry.linkUp(hello, 0).down(1_000);
    expect(registry.details(48 * hourMs)).toHaveLength(1);
    wished.add(hello.node);
    expect(registry.details(48 * hourMs)).toEqual([]);
  });
});

describe("the machine of a node", () => {
  const machine = { kernel: "6.8.0", memoryModules: [], disks: [], networkInterfaces: [], gpus: [] };
  const machineReading = { loadAverage1: 1, fileSystems: [], temperatures: [] };
  const known = () => registry.details(0)[0]!.report;

  test("stays known while reports do not contain it, even over another link of the same agent", () => {
    const link = registry.linkUp(hello, 0);
    link.report({ ...report(), machine, machineReading }, 0);
    link.report(report(), 1);
    expect(known()).toMatchObject({ machine, machineReading });
    registry.linkUp(hello, 0).report({ ...report(), machineReading: { ...machineReading, loadAverage1: 2 } }, 2);
    expect(known()).toMatchObject({ machine, machineReading: { loadAverage1: 2 } });
  });

  test("is unknown until the agent reports it, even after a restart of the agent", () => {
    registry.linkUp(hello, 0).report({ ...report(), machine, machineReading }, 0);
    registry.linkUp({ ...hello, bootId: "2" }, 0).report(report(), 1);
    expect(known()!.machine).toBeUndefined();
    expect(known()!.machineReading).toBeUndefined();
  });
});

test("waits for an inactive model are measured on every node, but not across a silence", () => {
  const other = asId<ModelId>("n");
  const waiting = { activeModel: other, waiters: [{ model, waiting: 1 }] };
  const link = registry.linkUp(hello, 0);
  link.report(report(waiting), 0);
  link.report(report(waiting), 2_000);
  link.report(report(), 4_000);
  expect(registry.waits.usualMs(model, 4_000)).toBe(4_000);
  link.report(report(waiting), 5_000);
  link.report(report(), 60_000);
  expect(registry.waits.usualMs(model, 60_000)).toBe(4_000);
});

test("past switches of slots that are not in the hello are not kept", () => {
  const link = registry.linkUp(hello, 0);
  const history = { switches: [{ endedAgoMs: 1, model, failed: false, tookMs: 1 }] };
  for (let n = 0; n < 100; n++) link.report(report({ name: asId(`other-${n}`), history }), n);
  link.report(report({ history }), 100);
  expect([...registry.details(100)[0]!.histories.keys()]).toEqual(report().slots.map(({ name }) => name));
});

test("failures of engines are kept until the agent reports others or restarts", () => {
  const link = registry.linkUp(hello, 0);
  const failure = { number: 1n, agoMs: 400, model, kind: "start", reason: "exit code 1", lines: [] };
  link.report(report({ failures: { failures: [failure] } }), 1_000);
  link.report(report(), 2_000);
  const known = (nowMs: number) => [...registry.details(nowMs)[0]!.failures.values()].flat();
  expect(known(2_000)).toMatchObject([{ atMs: 600, reason: "exit code 1" }]);
  link.report(report({ failures: { failures: [] } }), 3_000);
  expect(known(3_000)).toEqual([]);
  link.report(report({ failures: { failures: [failure] } }), 4_000);
  registry.linkUp({ ...hello, bootId: "another" }, 5_000);
  expect(known(5_000)).toEqual([]);
});

describe("a slot that refuses because it has no room", () => {
  const refuse = (times: number) => {
    for (let time = 0; time < times; time++)
      registry.began({ node, slot, model, account: asId("x"), bodyBytes: 1 }, 0)("overloaded", 0);
    return look(0).slots[0]!.troubles!.size;
  };
  test("is in trouble if it is at most half full, because load cannot be the reason", () => {
    registry.linkUp(hello, 0).report(report({ maxConcurrent: 8, running: 4 }), 0);
    expect(refuse(3)).toBe(1);
  });
  test.each([
    ["is more than half full", { maxConcurrent: 8, running: 5 }],
    ["serves another model", { activeModel: asId<ModelId>("other"), maxConcurrent: 8 }],
  ])("is in no trouble if it %s", (_what, given) => {
    registry.linkUp(hello, 0).report(report(given), 0);
    expect(refuse(20)).toBe(0);
  });
});

test("a restart of the agent clears the troubles of its slots", () => {
  registry.linkUp(hello, 0).report(report(), 0);
  for (let time = 0; time < 3; time++)
    registry.began({ node, slot, model, account: asId("x"), bodyBytes: 1 }, 0)({ outcome: "failed" }, 0);
  const troubles = () => look(0).slots[0]!.troubles!.size;
  expect(troubles()).toBe(1);
  registry.linkUp(hello, 0).report(report(), 0);
  expect(troubles()).toBe(1);
  registry.linkUp({ ...hello, bootId: "2" }, 0).report(report(), 0);
  expect(troubles()).toBe(0);
});

test("outcomes of slots that the current hello does not contain are not remembered", () => {
  const link = registry.linkUp(hello, 0);
  link.report({ ...report(), slots: [...report().slots, ...report({ name: asId("other") }).slots] }, 0);
  expect(look(0).slots.map(({ troubles }) => troubles !== undefined)).toEqual([true, false]);
  for (let time = 0; time < 3; time++)
    registry.began({ node, slot, model, account: asId("x"), bodyBytes: 1 }, 0)({ outcome: "failed" }, 0);
  link.hostingChanged({ ...hello, slots: [] });
  link.hostingChanged(hello);
  link.report(report(), 0);
  expect(look(0).slots[0]!.troubles!.size).toBe(0);
});

test("the hello determines which models of a slot one engine serves at the same time [B10]", () => {
  const alias = asId<ModelId>("alias");
  const engines = [{ models: [model, alias] }];
  const link = registry.linkUp({ ...hello, slots: [{ name: slot, models: [model, alias], engines }] }, 0);
  registry.connectionUp(node);
  link.report(report(), 0);
  expect(look(0).slots[0]).toMatchObject({ models: [model, alias], engines });
  expect(modelState(alias, registry.view(0)), "active, because the report names the engine's other model").toEqual({
    state: "active",
  });
});
