import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { addressesMax, IpLimit } from "./ip-limit.ts";

function setUp(perIpPerSecond = 10, perIpBurst = 20) {
  const clock = new VirtualClock();
  const limit = new IpLimit({ perIpPerSecond, perIpBurst }, clock);
  const admitted = (address: string, times: number) =>
    Array.from({ length: times }, () => limit.admit(address)).filter(Boolean).length;
  return { clock, limit, admitted };
}

test("a burst of 20 passes, the next does not", () => {
  expect(setUp().admitted("a", 50)).toBe(20);
});

test("after a burst about ten per second pass, refused ones cost nothing", () => {
  const { clock, admitted } = setUp();
  admitted("a", 20);
  let passed = 0;
  for (let second = 0; second < 10; second++) {
    clock.advance(1_000);
    passed += admitted("a", 100);
  }
  expect(passed).toBe(100);
});

test("an address that rests has its burst again, and no more", () => {
  const { clock, admitted } = setUp();
  admitted("a", 20);
  clock.advance(3_600_000);
  expect(admitted("a", 50)).toBe(20);
});

test("each address is alone, loopback ones too", () => {
  const { admitted } = setUp();
  expect([admitted("127.0.0.1", 30), admitted("127.0.0.2", 30), admitted("::1", 30)]).toEqual([20, 20, 20]);
});

test("an address that was seen in the turn before keeps what it used", () => {
  const { clock, admitted } = setUp(1, 20);
  clock.advance(19_900);
  admitted("a", 20);
  clock.advance(200);
  expect(admitted("a", 20)).toBe(0);
});

test("0 per second turns it off", () => {
  expect(setUp(0).admitted("a", 10_000)).toBe(10_000);
});

test("the table is bounded, and a flood of addresses does not reset a busy one", () => {
  const { limit, admitted } = setUp();
  admitted("busy", 20);
  for (let n = 0; n < 2 * addressesMax; n++) {
    limit.admit(`flood-${n}`);
    if (n % 1_000 === 0) limit.admit("busy");
  }
  expect(limit.size).toBeLessThanOrEqual(addressesMax);
  expect(admitted("busy", 5)).toBe(0);
});

test("idle addresses are forgotten", () => {
  const { clock, limit } = setUp();
  for (let n = 0; n < 1_000; n++) limit.admit(`a${n}`);
  for (let n = 0; n < 2; n++, clock.advance(2_000)) limit.admit("b");
  limit.admit("b");
  expect(limit.size).toBe(2);
});
