/** Tests how ended attempts put a slot in trouble, and how slow slots are recognised. */
import { beforeEach, expect, test } from "vitest";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { Outcomes, type AttemptEnd } from "./outcomes.ts";

const slot = asId<SlotName>("s");
const [a, b] = ["a", "b"].map((name) => asId<ModelId>(name)) as [ModelId, ModelId];
const nodes = ["n1", "n2", "n3"].map((name) => asId<NodeId>(name)) as [NodeId, NodeId, NodeId];
const [n1, n2, n3] = nodes;
let outcomes: Outcomes;
let said: string[];
beforeEach(() => {
  said = [];
  outcomes = new Outcomes({
    attemptFailed: () => {},
    placeTroubled: ({ node, model }, { kind }) => void said.push(`${node} ${model} ${kind}`),
    placeTrusted: ({ node, model }) => void said.push(`${node} ${model} trusted`),
  });
});

function attempt(node: NodeId, end: AttemptEnd, { model = a, bodyBytes = 1_000, nowMs = 0 } = {}): void {
  outcomes.began({ node, slot, model, account: asId("x"), bodyBytes }, nowMs)(end, nowMs);
}
const fail = (node: NodeId, model = a) => attempt(node, { outcome: "failed" }, { model });
const serve = (node: NodeId, firstByteMs: number, bodyBytes?: number) =>
  attempt(node, { outcome: "served", firstByteMs }, { bodyBytes });
const kindOf = (node: NodeId, model = a) => outcomes.troublesOf(node, slot).get(model)?.kind;

test("trouble with one model of a slot does not affect its other model, and events report its beginning and end", () => {
  for (let time = 0; time < 3; time++) {
    fail(n1);
    attempt(n1, { outcome: "served" }, { model: b });
  }
  expect([kindOf(n1), kindOf(n1, b)]).toEqual(["failing", undefined]);
  for (let time = 0; time < 5; time++) attempt(n1, { outcome: "served" }, { nowMs: 60_000 });
  expect(kindOf(n1)).toBeUndefined();
  expect(said).toEqual(["n1 a failing", "n1 a trusted"]);
});

test("only the first end of an attempt counts", () => {
  const ended = outcomes.began({ node: n1, slot, model: a, account: asId("x"), bodyBytes: 1 }, 0);
  for (let time = 0; time < 5; time++) ended({ outcome: "failed" }, 0);
  expect(kindOf(n1)).toBeUndefined();
});

test("a slot is not due for a trial while a request tries it", () => {
  for (let time = 0; time < 3; time++) fail(n1);
  outcomes.began({ node: n1, slot, model: a, account: asId("x"), bodyBytes: 1 }, 10_000);
  expect(outcomes.troublesOf(n1, slot).get(a)!.tryAtMs).toBe(Infinity);
});

test("a slot whose first byte takes twenty times as long as in most others is slow", () => {
  for (let time = 0; time < 10; time++) for (const node of [n2, n3]) serve(node, 200);
  for (let time = 0; time < 3; time++) serve(n1, 4_500);
  expect(kindOf(n1)).toBe("slow");
});

test.each([
  ["takes less than twenty times as long", 200, 3_900, 1_000],
  ["takes less than three seconds", 20, 2_900, 1_000],
  ["gets far longer requests", 200, 9_000, 120_000],
])("a slot is not slow if it %s", (_what, usualMs, firstByteMs, bodyBytes) => {
  for (let time = 0; time < 10; time++) for (const node of [n2, n3]) serve(node, usualMs);
  for (let time = 0; time < 10; time++) serve(n1, firstByteMs, bodyBytes);
  expect(kindOf(n1)).toBeUndefined();
});

test("a slot is not slow until another slot has served enough requests to compare", () => {
  for (let time = 0; time < 4; time++) serve(n2, 200);
  for (let time = 0; time < 10; time++) serve(n1, 60_000);
  expect(kindOf(n1)).toBeUndefined();
});

test("two of three slots are recognised as slow by comparison with the third", () => {
  for (let time = 0; time < 10; time++) serve(n3, 200);
  for (let time = 0; time < 10; time++) for (const node of [n1, n2]) serve(node, 9_000);
  expect([kindOf(n1), kindOf(n2), kindOf(n3)]).toEqual(["slow", "slow", undefined]);
});

test("a forgotten node begins without trouble", () => {
  for (let time = 0; time < 3; time++) fail(n1);
  outcomes.forget(n1);
  expect(kindOf(n1)).toBeUndefined();
});
