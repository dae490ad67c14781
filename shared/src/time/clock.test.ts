import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { systemClock } from "./clock.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";

const days = 86_400_000;
const longestMs = 2 ** 31 - 1;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it.each([0, 1, longestMs, longestMs + 1, 2 * longestMs + 1, 30 * days, 365 * days, Infinity])(
  "a timer of %d ms fires at its time and not before, on the system's clock and on a virtual clock",
  (delayMs) => {
    const virtual = new VirtualClock();
    const fired: string[] = [];
    systemClock.after(delayMs, () => fired.push("system"));
    virtual.after(delayMs, () => fired.push("virtual"));
    const ms = Math.min(delayMs, 1_000 * days);
    vi.advanceTimersByTime(Math.max(0, ms - 1));
    virtual.advance(Math.max(0, ms - 1));
    expect(fired).toEqual(delayMs === 0 ? ["system", "virtual"] : []);
    vi.advanceTimersByTime(1);
    virtual.advance(1);
    expect(fired).toEqual(delayMs === Infinity ? [] : ["system", "virtual"]);
  },
);

it("a timer of many days can be cancelled at any time", () => {
  const fired: number[] = [];
  for (const waitedMs of [0, longestMs + 1, 30 * days - 1]) {
    const timer = systemClock.after(30 * days, () => fired.push(waitedMs));
    vi.advanceTimersByTime(waitedMs);
    timer.cancel();
    vi.advanceTimersByTime(30 * days);
  }
  expect(fired).toEqual([]);
});
