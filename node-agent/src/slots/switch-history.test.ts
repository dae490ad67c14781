import { expect, test } from "vitest";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { SwitchHistory } from "./switch-history.ts";

const [a, b] = [asId<SlotName>("a"), asId<SlotName>("b")];
const model = asId<ModelId>("m");
const report = { model, tookMs: 4_000, phasesMs: { drain: 1_000, start: 3_000 } };

test("a slot's switches and failed starts are kept in order, separately for each slot", () => {
  const clock = new VirtualClock();
  const history = new SwitchHistory(clock);
  history.switched(a, report);
  clock.advance(5_000);
  history.startFailed(a, model);
  history.switched(b, report);
  expect(history.all.get(a)).toEqual([
    { endedAtMs: clock.monotonicMs() - 5_000, model, report },
    { endedAtMs: clock.monotonicMs(), model },
  ]);
  expect(history.all.get(b)).toHaveLength(1);
});

test("the array is replaced only when an entry is added, and then drops entries older than an hour or beyond the newest 50", () => {
  const clock = new VirtualClock();
  const history = new SwitchHistory(clock);
  history.switched(a, report);
  const before = history.all.get(a);
  history.switched(b, report);
  expect(history.all.get(a)).toBe(before);
  clock.advance(3_600_001);
  history.startFailed(a, model);
  expect(history.all.get(a)).toHaveLength(1);
  for (let times = 0; times < 60; times++) history.switched(a, report);
  expect(history.all.get(a)).toHaveLength(50);
});
