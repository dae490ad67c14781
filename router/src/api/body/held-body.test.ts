import { expect, test } from "vitest";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { ByteBudget } from "@weiche/shared/http/byte-budget.ts";
import { ClientGone, type Exchange } from "../exchange.ts";
import { HeldBody, smallBytesMax } from "./held-body.ts";

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

function hold(bytesMax: number) {
  const budget = new ByteBudget(bytesMax, new VirtualClock());
  let settled = () => {};
  const exchange = { signal: nobody, onSettled: (callback: () => void) => (settled = callback) } as unknown as Exchange;
  const isFree = async (bytes: number) => {
    const controller = new AbortController();
    const taken = budget.take(bytes, controller.signal).then(
      () => {
        budget.give(bytes);
        return true;
      },
      () => false,
    );
    await settle();
    controller.abort(new Error("enough"));
    return taken;
  };
  return { budget, exchange, isFree, settle: () => settled() };
}

test("a held body takes room only while it is large and needed, and gives it back once", async () => {
  const { budget, exchange, isFree, settle } = hold(4 * smallBytesMax);
  const body = new HeldBody(budget, exchange);
  await body.reserve(3 * smallBytesMax);
  expect([await isFree(smallBytesMax), await isFree(2 * smallBytesMax)]).toEqual([true, false]);
  body.fill(Buffer.alloc(2 * smallBytesMax));
  expect([await isFree(2 * smallBytesMax), await isFree(3 * smallBytesMax)]).toEqual([true, false]);
  body.drop();
  settle();
  expect([await isFree(4 * smallBytesMax), await isFree(4 * smallBytesMax + 1)]).toEqual([true, false]);
  expect(body.bytes).toBeUndefined();
  const small = new HeldBody(budget, exchange);
  await small.reserve(smallBytesMax);
  expect(await isFree(4 * smallBytesMax)).toBe(true);
  settle();
  expect(() => small.fill(Buffer.alloc(2 * smallBytesMax))).toThrow(ClientGone);
  expect([await isFree(4 * smallBytesMax), await isFree(4 * smallBytesMax + 1)]).toEqual([true, false]);
});

test("the room of a body that a thread has is free only when it comes back, also of one that was dropped", async () => {
  const { budget, exchange, isFree, settle } = hold(4 * smallBytesMax);
  const body = new HeldBody(budget, exchange);
  await body.reserve(3 * smallBytesMax);
  body.fill(Buffer.alloc(3 * smallBytesMax));
  body.takeBack(body.lend());
  expect(body.bytes).toHaveLength(3 * smallBytesMax);
  const lent = body.lend();
  expect(body.bytes).toBeUndefined();
  settle();
  expect(await isFree(2 * smallBytesMax)).toBe(false);
  body.takeBack(lent);
  expect([body.bytes, await isFree(4 * smallBytesMax)]).toEqual([undefined, true]);
  expect(() => body.lend()).toThrow(ClientGone);
});
