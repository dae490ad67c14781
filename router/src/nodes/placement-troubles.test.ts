/** Tests how placement treats slots whose requests for a model fail or are slow. */
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
])("a slot whose requests fail is avoided in favour of a slot that %s", (_what, other) => {
  expect(chosen([active("x", failing), one("y", other)])).toBe("y");
});

test.each<[string, SlotGiven]>([
  ["refuses the model", { state: SlotState.DRAINING_CLOSED, activeModel: a, nextModel: b }],
  ["is in backoff", { state: SlotState.FAILED, activeModel: a, retryInMs: 2_000 }],
])("a slot whose requests fail is used if the other slot %s", (_what, other) => {
  expect(chosen([active("x", failing), one("y", other)])).toBe("x");
});

test("a slot whose requests fail is used if the only other slot was tried already, or if there is no other", () => {
  expect(chosen([active("x", failing), active("y")], {}, ["y"])).toBe("x");
  expect(chosen([active("x", failing)])).toBe("x");
});

test("if the requests of all slots fail, placement chooses as if none did", () => {
  const nodes = [active("x", { ...failing, inFlight: 2 }), active("y", { ...failing, inFlight: 1 })];
  expect(chosen(nodes)).toBe("y");
});

test("a slot whose requests for one model fail is still used for its other models", () => {
  const x = active("x", troubled("failing", Infinity, b));
  expect(chosen([x, active("y", { inFlight: 1 })])).toBe("x");
});

test("neither load nor a conversation's home makes placement choose a slot whose requests fail", () => {
  const nodes = [active("x", failing), active("y", { inFlight: 6 }), active("z", { inFlight: 6 })];
  for (let index = 0; index < 50; index++) expect(chosen(nodes, { affinityKey: `c${index}` })).not.toBe("x");
});

describe("a slot that is slow counts as full:", () => {
  const slow = troubled("slow");
  test("a slot with free places is preferred to it", () => {
    expect(chosen([active("x", slow), active("y", { inFlight: 7 })])).toBe("y");
  });
  test("load decides between it and full slots", () => {
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
