/**
 * Tests how an arriving body gets room: none for its announced length, all at once at a good pace, and in steps after a
 * stall.
 */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { ByteBudget, type Room } from "@weiche/shared/http/byte-budget.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { settle, VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { Exchange } from "../exchange.ts";
import { bodyBytesMax, BodyReceiver, paceSeconds } from "./body-receiver.ts";
import { HeldBody, smallBytesMax } from "./held-body.ts";

const megabyte = 1 << 20;
const times = { bodyMsMax: 60_000, bytesPerExtraSecond: 250_000 };
const { signal } = new AbortController();

/** Receives an account's body. There is room for one whole body, and memory for another one is reserved. */
async function receiving(announced: number | undefined = bodyBytesMax) {
  const clock = new VirtualClock();
  // Two bytes are added: the prober needs one, because it cannot use reserved memory, and one always stays free.
  const budget = new ByteBudget(2 * bodyBytesMax + 2, bodyBytesMax, clock);
  const prober: Room["sharers"] = [{ name: "prober", timesFree: 1e9 }];
  await budget.grow(budget.open(prober), 1, signal);
  /** Returns whether another account could get this many bytes. */
  const isFree = async (bytes: number) => {
    const room = budget.open(prober);
    const controller = new AbortController();
    const asked = budget.grow(room, bytes, controller.signal).catch(() => {});
    controller.abort(new Error("enough"));
    await asked;
    const granted = room.bytes;
    budget.shrink(room, 0);
    return granted === bytes;
  };
  const request = new PassThrough();
  const exchange = { request, signal, onSettled() {} } as unknown as Exchange;
  const held = new HeldBody(budget, exchange, asId<AccountId>("a"));
  const { whole } = new BodyReceiver(exchange, announced, held, times, clock);
  const send = async (bytes: number) => {
    for (let left = bytes; left > 0; left -= 64 << 10) request.write(Buffer.alloc(Math.min(left, 64 << 10)));
    await settle();
    for (let turn = 0; turn < 400 && request.readableLength > 0; turn++) await settle();
  };
  return { clock, isFree, request, send, whole };
}

test("neither an announced length nor the first megabyte takes room [D1 D10]", async () => {
  const { isFree, send } = await receiving();
  expect(await isFree(bodyBytesMax)).toBe(true);
  await send(smallBytesMax);
  expect(await isFree(bodyBytesMax)).toBe(true);
  await send(1);
  expect(await isFree(2 * megabyte)).toBe(false);
});

test("a stalled body returns the room of missing bytes, continues in steps, and arrives whole [D1 D10]", async () => {
  const { clock, isFree, send, whole, request } = await receiving();
  await send(2 * megabyte);
  expect(await isFree(2 * megabyte)).toBe(false);
  await clock.advanceAsync(paceSeconds * 1_000);
  expect([await isFree(18 * megabyte), await isFree(20 * megabyte)]).toEqual([true, false]);
  await send(1);
  expect([await isFree(16 * megabyte), await isFree(17 * megabyte)]).toEqual([true, false]);
  await send(18 * megabyte - 1);
  request.end();
  expect((await whole).length).toBe(bodyBytesMax);
  expect(clock.pending).toBe(0);
});

test("a large body without a length takes the room of the largest body", async () => {
  const { isFree, send, whole, request } = await receiving(undefined);
  await send(2 * megabyte);
  expect(await isFree(1)).toBe(false);
  request.end();
  expect((await whole).length).toBe(2 * megabyte);
});

test("a body at a good pace keeps its room", async () => {
  const { clock, isFree, send } = await receiving();
  await send(2 * megabyte);
  for (let n = 0; n < 5; n++) {
    await send(2 * megabyte);
    await clock.advanceAsync(paceSeconds * 1_000);
  }
  expect(await isFree(2 * megabyte)).toBe(false);
});

test("of a body over 128 KB one piece is read in a turn of the event loop", async () => {
  const { request } = await receiving();
  let turn = 0;
  const count = () => void setImmediate(() => (turn++, pieces.length < sent && count()));
  const pieces: number[] = [];
  const sent = 12;
  count();
  request.on("data", () => pieces.push(turn));
  for (let n = 0; n < sent; n++) request.write(Buffer.alloc(64 << 10));
  await expect.poll(() => pieces.length).toBe(sent);
  const large = pieces.slice(2);
  expect(new Set(large).size).toBe(large.length);
});
