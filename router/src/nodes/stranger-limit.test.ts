import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { handshakesKept, handshakesMax, handshakesPerAddressMax, StrangerLimit } from "./stranger-limit.ts";

function rig() {
  const clock = new VirtualClock();
  const strangers = new StrangerLimit(clock, (address) => address === "10.0.0.1");
  const open = (remoteAddress: string, count = 1) =>
    Array.from({ length: count }, () => strangers.admit({ remoteAddress })).filter((settle) => settle !== undefined);
  return { clock, strangers, open };
}

test("the concurrent handshakes of one address are bounded, without effect on other addresses [D10]", () => {
  const { open } = rig();
  const held = open("192.0.2.1", 1_000);
  expect(held).toHaveLength(handshakesPerAddressMax);
  expect(open("192.0.2.2")).toHaveLength(1);
  held[0]!(true);
  expect(open("192.0.2.1", 10)).toHaveLength(1);
});

test("all addresses of an IPv6 site count as one, and the handshakes of all strangers together are bounded", () => {
  const { open, strangers } = rig();
  expect(Array.from({ length: 1_000 }, (_, n) => open(`2001:db8:0:${n.toString(16)}::1`)).flat()).toHaveLength(
    handshakesPerAddressMax,
  );
  for (let n = 0; n < 5_000; n++) open(`198.51.${n >> 8}.${n & 255}`);
  expect(strangers.handshakes).toBe(handshakesMax - handshakesKept);
});

test("ten thousand connections of nodes behind one address pass in sequence, if each completes its handshake [D10]", () => {
  const { open } = rig();
  for (let n = 0; n < 10_000; n++) {
    const [settle] = open("192.0.2.1");
    settle!(true);
  }
  expect(open("192.0.2.1")).toHaveLength(1);
});

test("an address is refused after a hundred failed handshakes, and regains five per second [D10]", () => {
  const { clock, open, strangers } = rig();
  let admitted = 0;
  const knock = () => open("192.0.2.1").forEach((settle) => (admitted++, settle(false)));
  for (let n = 0; n < 4_000; n++) knock();
  expect(admitted).toBe(100);
  clock.advance(2_000);
  for (let n = 0; n < 4_000; n++) knock();
  expect(admitted).toBe(110);
  expect(open("192.0.2.2")).toHaveLength(1);
  expect(strangers.handshakes).toBe(1);
});

test("failed handshakes of one address that run at the same time have no higher rate than one after the other [D10]", () => {
  const { clock, open } = rig();
  let admitted = 0;
  for (let ms = 0; ms < 60_000; ms += 50) {
    const held = open("192.0.2.1", 200);
    admitted += held.length;
    clock.advance(50);
    for (const settle of held) settle(false);
  }
  expect(admitted).toBeLessThanOrEqual(100 + 5 * 60 + handshakesPerAddressMax);
});

test("a trusted proxy, behind which strangers and nodes share one address, is bounded only by the total", () => {
  const { open } = rig();
  for (let n = 0; n < 1_000; n++) for (const settle of open("10.0.0.1")) settle(false);
  expect(open("10.0.0.1", 1_000)).toHaveLength(handshakesMax - handshakesKept);
});

test.each([
  ["IPv4", "192.0.2.1", "192.0.2.1"],
  ["IPv6", "2001:db8::1", "2001:db8::2"],
])(
  "known nodes can connect while strangers of many addresses use all their handshakes: %s [D10]",
  (_family, before, after) => {
    const { open, strangers } = rig();
    for (const settle of open(before)) settle(true);
    for (let n = 0; n < 200; n++) open(`198.51.100.${n}`, 25);
    expect(strangers.handshakes).toBe(handshakesMax - handshakesKept);
    expect(open("192.0.2.200")).toHaveLength(0);
    expect(open(after, 1_000)).toHaveLength(handshakesKept);
  },
);

test("the last ten thousand addresses of nodes are remembered", () => {
  const { open } = rig();
  const addressOf = (n: number) => `10.1.${n >> 8}.${n & 255}`;
  for (let n = 0; n < 10_000; n++) for (const settle of open(addressOf(n))) settle(true);
  for (const n of [0, 10_000]) for (const settle of open(addressOf(n))) settle(true);
  for (let n = 0; n < 200; n++) open(`198.51.100.${n}`, 25);
  expect([0, 1, 2, 10_000].map((n) => open(addressOf(n)).length)).toEqual([1, 0, 1, 1]);
});
