import { expect, test } from "vitest";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { ByteBudget } from "./byte-budget.ts";

const nobody = new AbortController().signal;

function setUp() {
  const clock = new VirtualClock();
  const budget = new ByteBudget(100, clock);
  const order: string[] = [];
  const take = (name: string, bytes: number, signal = nobody) =>
    void budget.take(bytes, signal).then(
      () => order.push(name),
      (error: Error) => order.push(`${name}: ${error.message}`),
    );
  return { clock, budget, order, take };
}

test("who finds room is let in at once, others wait in line, also behind a larger one", async () => {
  const { budget, order, take } = setUp();
  take("a", 60);
  take("b", 60);
  take("c", 10);
  await settle();
  expect(order).toEqual(["a"]);
  budget.give(60);
  await settle();
  expect(order).toEqual(["a", "b", "c"]);
});

test("a waiter that leaves makes way, and its room is nobody's loss", async () => {
  const { budget, order, take } = setUp();
  const controller = new AbortController();
  take("a", 60);
  take("b", 100, controller.signal);
  take("c", 40);
  controller.abort(new Error("gone"));
  await settle();
  expect(order).toEqual(["a", "b: gone", "c"]);
  budget.give(100);
  take("d", 100);
  await settle();
  expect(order.at(-1)).toBe("d");
});

test("after 30 s in line it is 503", async () => {
  const { clock, order, take } = setUp();
  take("a", 60);
  take("b", 60);
  await clock.advanceAsync(29_999);
  expect(order).toEqual(["a"]);
  await clock.advanceAsync(1);
  expect(order).toEqual(["a", "b: Too many large requests at once."]);
  expect(clock.pending).toBe(0);
});
