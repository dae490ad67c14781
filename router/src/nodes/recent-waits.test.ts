import { beforeEach, expect, test } from "vitest";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { SlotState, type SlotReport } from "./node-view.ts";
import { RecentWaits, WaitWatch } from "./recent-waits.ts";

const model = asId<ModelId>("m");
const other = asId<ModelId>("n");
let waits: RecentWaits;
let watch: WaitWatch;
beforeEach(() => {
  waits = new RecentWaits();
  watch = new WaitWatch(waits);
});

function report(nowMs: number, state: SlotReport["state"], activeModel: ModelId, waiting: number): void {
  const slot: SlotReport = {
    ...{ name: asId<SlotName>("s"), state, activeModel, running: 0, runningOfRouter: 0, stateAgeMs: 0 },
    waiters: waiting > 0 ? [{ model, waiting }] : [],
  };
  watch.take([slot], () => ({ models: [model, other] }), nowMs);
}

/** Reports a wait of this length that ends at `endMs`. */
function wait(tookMs: number, endMs: number): void {
  report(endMs - tookMs, SlotState.ACTIVE, other, 1);
  report(endMs - 1, SlotState.STARTING, model, 2);
  report(endMs, SlotState.ACTIVE, model, 0);
}

test("a wait lasts from the first report with a waiter to the first report that serves the model", () => {
  expect(waits.usualMs(model, 0)).toBeUndefined();
  wait(7_000, 10_000);
  expect(waits.usualMs(model, 10_000)).toBe(7_000);
  expect(waits.usualMs(other, 10_000)).toBeUndefined();
});

test("the usual wait is the median of the last five within a day", () => {
  for (const [index, tookMs] of [50_000, 3_000, 9_000, 4_000, 60_000, 5_000].entries())
    wait(tookMs, 100_000 * (index + 1));
  expect(waits.usualMs(model, 600_000)).toBe(5_000);
  expect(waits.usualMs(model, 300_000 + 24 * 3_600_000 + 1)).toBe(5_000); // of 4, 60 and 5 s
  expect(waits.usualMs(model, 600_000 + 24 * 3_600_000 + 1)).toBeUndefined();
});

test("no wait is recorded for a waiter that leaves, a model that is served at once, or a gap between reports", () => {
  report(0, SlotState.ACTIVE, other, 1);
  report(1_000, SlotState.ACTIVE, other, 0);
  report(2_000, SlotState.ACTIVE, model, 3);
  report(3_000, SlotState.ACTIVE, other, 1);
  watch.forget();
  report(90_000, SlotState.ACTIVE, model, 0);
  expect(waits.usualMs(model, 90_000)).toBeUndefined();
});
