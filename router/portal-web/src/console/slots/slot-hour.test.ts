import { expect, test } from "vitest";
import { slotHour } from "./slot-hour.ts";

const nowMs = Date.parse("2026-11-23T12:00:00Z");
const at = (minutesAgo: number) => new Date(nowMs - minutesAgo * 60_000).toISOString();
const history = (since: string, switches: Parameters<typeof slotHour>[0] extends infer H ? H : never) =>
  ({ node: "n", slot: "a", since, ...(switches as object) }) as never;

const one = (minutesAgo: number, model: string, from: string, seconds: number, failed = false) => ({
  ...{ endedAt: at(minutesAgo), model, from, failed, seconds },
  parts: failed ? {} : { drain: seconds / 2, start: seconds / 2 },
});

test("switches before the last hour do not count, and a switch at its edge counts in part", () => {
  const switches = [one(70, "x", "y", 30), one(59, "a", "b", 120), one(30, "b", "a", 60)];
  const hour = slotHour(history(at(600), { switches } as never), "b", nowMs);
  expect(hour.switches.map(({ model }) => model)).toEqual(["b", "a"]);
  expect(hour.share).toBeCloseTo((60 + 60) / 3600, 5);
  expect(hour.seconds).toEqual({ drain: 90, stop: 0, memory: 0, start: 90, probe: 0 });
});

test("for an agent that has run for ten minutes, the share is of these ten minutes", () => {
  const hour = slotHour(history(at(10), { switches: [one(5, "a", "b", 60)] } as never), "a", nowMs);
  expect([hour.spanMs, hour.share]).toEqual([600_000, 0.1]);
});

test("the spans are the old model, the switch and the new model, and no model after a failed start", () => {
  const switches = [one(40, "b", "a", 60), one(20, "c", "b", 0, true)];
  const { spans, failed } = slotHour(history(at(600), { switches } as never), undefined, nowMs);
  const minutes = (ms: number) => Math.round(ms / 60_000);
  expect(spans.map(({ kind, model, fromMs, toMs }) => [kind, model, minutes(fromMs), minutes(toMs)])).toEqual([
    ["active", "a", 0, 19],
    ["switching", "b", 19, 20],
    ["active", "b", 20, 40],
    ["failed", "c", 40, 40],
  ]);
  expect(failed).toBe(1);
});

test("a slot without a history had its current state for the whole hour", () => {
  const { spans, share } = slotHour(undefined, "a", nowMs);
  expect([spans.length, spans[0]?.model, share]).toEqual([1, "a", 0]);
});
