import { expect, test } from "vitest";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { ByteBudget, type Room } from "@weiche/shared/http/byte-budget.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { ClientGone, type Exchange } from "../exchange.ts";
import { HeldBody, smallBytesMax } from "./held-body.ts";

const nobody = new AbortController().signal;
const account = asId<AccountId>("account");

function hold(bytesMax: number) {
  // Two bytes are added: the prober needs one, because it cannot use reserved memory, and one always stays free.
  const budget = new ByteBudget(bytesMax + bytesMax + 2, bytesMax, new VirtualClock());
  const prober: Room["sharers"] = [{ name: "prober", timesFree: 1e9 }];
  void budget.grow(budget.open(prober), 1, nobody);
  let settled = () => {};
  const exchange = { signal: nobody, onSettled: (callback: () => void) => (settled = callback) } as unknown as Exchange;
  const isFree = async (bytes: number) => {
    const controller = new AbortController();
    const room = budget.open(prober);
    const taken = budget.grow(room, bytes, controller.signal).then(
      () => {
        budget.shrink(room, 0);
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

test("a held body takes room only while it is large and needed, and returns it once", async () => {
  const { budget, exchange, isFree, settle } = hold(4 * smallBytesMax);
  const body = new HeldBody(budget, exchange, account);
  await body.reserve(3 * smallBytesMax);
  expect([await isFree(smallBytesMax), await isFree(2 * smallBytesMax)]).toEqual([true, false]);
  body.retract(2.5 * smallBytesMax);
  expect([await isFree(1.5 * smallBytesMax), await isFree(2 * smallBytesMax)]).toEqual([true, false]);
  body.fill(Buffer.alloc(2 * smallBytesMax));
  expect([await isFree(2 * smallBytesMax), await isFree(3 * smallBytesMax)]).toEqual([true, false]);
  body.drop();
  settle();
  expect(await isFree(4 * smallBytesMax)).toBe(true);
  expect(body.bytes).toBeUndefined();
  const small = new HeldBody(budget, exchange, account);
  await small.reserve(smallBytesMax);
  expect(await isFree(4 * smallBytesMax)).toBe(true);
  settle();
  expect(() => small.fill(Buffer.alloc(2 * smallBytesMax))).toThrow(ClientGone);
  expect(await isFree(4 * smallBytesMax)).toBe(true);
});

test("the room of a lent body is free only after the body is returned, even if it was dropped", async () => {
  const { budget, exchange, isFree, settle } = hold(4 * smallBytesMax);
  const body = new HeldBody(budget, exchange, account);
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
