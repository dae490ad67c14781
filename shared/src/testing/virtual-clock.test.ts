import { expect, test } from "vitest";
import { every, sleep } from "../time/clock.ts";
import { createRandom } from "../random.ts";
import { VirtualClock } from "./virtual-clock.ts";

test("timers fire in the order of their time, then of their creation", () => {
  const clock = new VirtualClock(0);
  const seen: string[] = [];
  clock.after(20, () => seen.push(`late@${clock.now()}`));
  clock.after(10, () => seen.push(`first@${clock.now()}`));
  clock.after(10, () => seen.push(`second@${clock.now()}`));
  const cancelled = clock.after(5, () => seen.push("never"));
  cancelled.cancel();
  clock.advance(15);
  expect(seen).toEqual(["first@10", "second@10"]);
  expect(clock.now()).toBe(15);
  clock.advance(5);
  expect(seen.at(-1)).toBe("late@20");
  expect(clock.pending).toBe(0);
});

test("many timers fire in the order of their time, and those of one instant in the order of their creation", () => {
  const random = createRandom(1);
  const clock = new VirtualClock(0);
  const fired: [atMs: number, order: number][] = [];
  for (let order = 0; order < 500; order++) {
    const atMs = random.below(50);
    clock.after(atMs, () => fired.push([atMs, order]));
  }
  while (clock.step());
  expect(fired).toEqual(fired.toSorted(([a, m], [b, n]) => a - b || m - n));
  expect(fired.length).toBe(500);
});

test("an aborted sleep rejects with the reason and leaves no timer", async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const sleeping = sleep(clock, 1000, controller.signal);
  controller.abort(new Error("gone"));
  await expect(sleeping).rejects.toThrow("gone");
  expect(clock.pending).toBe(0);
});

test("a repeated task runs again after it has settled, until it is cancelled", async () => {
  const clock = new VirtualClock();
  let runs = 0;
  const timer = every(clock, 100, () => void runs++);
  await clock.advanceAsync(350);
  expect(runs).toBe(3);
  timer.cancel();
  await clock.advanceAsync(1000);
  expect(runs).toBe(3);
});
