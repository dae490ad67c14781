/** Slots whose requests for a model fail or are slow, as placement uses them. */
import { describe, expect, test } from "vitest";
import type { ModelId } from "@weiche/shared/ids.ts";
import { a, active, b, chosen, nowMs, one, type SlotGiven } from "../../test/nodes/placement-views.ts";
import { SlotState } from "./node-view.ts";
import type { Trouble } from "./outcomes/standing.ts";

const troubled = (kind: Trouble["kind"], tryAtMs = Infinity, model: ModelId = a) => ({
  troubles: new Map([[model, { kind, share: 1, sinceMs: 0, tryAtMs, changedAtMs: 0 }]]),
});
const failing = troubled("failing");

test.each<[string, SlotGiven]>([
  ["is active and loaded", { state: SlotState.ACTIVE, activeModel: a, running: 7, inFlight: 7, maxConcurrent: 8 }],
  ["is full", { state: SlotState.ACTIVE, activeModel: a, running: 8, inFlight: 8, maxConcurrent: 8 }],
  ["has to start the model", { state: SlotState.EMPTY }],
  ["is busy with another model", { state: SlotState.ACTIVE, activeModel: b, running: 1 }],
  ["switches to another model", { state: SlotState.STARTING, activeModel: b }],
])("a slot whose requests fail is avoided for one that %s", (_what, other) => {
  expect(chosen([active("x", failing), one("y", other)])).toBe("y");
});

test.each<[string, SlotGiven]>([
  ["refuses the model", { state: SlotState.DRAINING_CLOSED, activeModel: a, nextModel: b }],
  ["is in backoff", { state: SlotState.FAILED, activeModel: a, retryInMs: 2_000 }],
])("it is used if the other one %s", (_what, other) => {
  expect(chosen([active("x", failing), one("y", other)])).toBe("x");
});

test("it is used if the other one was tried already, and if there is none", () => {
  expect(chosen([active("x", failing), active("y")], {}, ["y"])).toBe("x");
  expect(chosen([active("x", failing)])).toBe("x");
});

test("slots that all fail are chosen among as if none did", () => {
  const nodes = [active("x", { ...failing, inFlight: 2 }), active("y", { ...failing, inFlight: 1 })];
  expect(chosen(nodes)).toBe("y");
});

test("another model of the slot is not avoided", () => {
  const x = active("x", troubled("failing", Infinity, b));
  expect(chosen([x, active("y", { inFlight: 1 })])).toBe("x");
});

test("neither load nor the home of a conversation brings a request to it", () => {
  const nodes = [active("x", failing), active("y", { inFlight: 6 }), active("z", { inFlight: 6 })];
  for (let index = 0; index < 50; index++) expect(chosen(nodes, { affinityKey: `c${index}` })).not.toBe("x");
});

describe("a slot that is slow counts as full:", () => {
  const slow = troubled("slow");
  test("one with free places is preferred", () => {
    expect(chosen([active("x", slow), active("y", { inFlight: 7 })])).toBe("y");
  });
  test("among full ones it goes by load", () => {
    expect(chosen([active("x", slow), active("y", { running: 8, inFlight: 8 })])).toBe("x");
  });
});

describe("a slot in trouble that is due", () => {
  const due = active("x", { ...troubled("failing", nowMs), inFlight: 5 });
  test("gets the next request, whatever its load and the conversation", () => {
    expect(chosen([due, active("y")], { affinityKey: "c" })).toBe("x");
  });
  test("gets no second attempt", () => {
    expect(chosen([due, active("y"), active("z")], {}, ["z"])).toBe("y");
  });
  test("is not tried where an engine would have to start, while the model is active elsewhere", () => {
    expect(chosen([one("x", { state: SlotState.EMPTY, ...troubled("failing", nowMs) }), active("y")])).toBe("y");
  });
  test("is not tried while it is full", () => {
    const full = active("x", { ...troubled("failing", nowMs), running: 8, inFlight: 8 });
    expect(chosen([full, active("y")])).toBe("y");
  });
});
