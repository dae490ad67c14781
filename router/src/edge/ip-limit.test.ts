import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { addressesMax, IpLimit, linesPerSite } from "./ip-limit.ts";

function setUp(perIpPerSecond = 10, perIpBurst = 20) {
  const clock = new VirtualClock();
  const limit = new IpLimit({ perIpPerSecond, perIpBurst }, clock);
  const admitted = (address: string, times: number) =>
    Array.from({ length: times }, () => limit.admit(address)).filter(Boolean).length;
  return { clock, limit, admitted };
}

test("a burst of 20 requests is admitted and the next one refused [S19.5]", () => {
  expect(setUp().admitted("a", 50)).toBe(20);
});

test("after a burst ten requests per second are admitted, and refused ones take no token [S19.5]", () => {
  const { clock, admitted } = setUp();
  admitted("a", 20);
  let passed = 0;
  for (let second = 0; second < 10; second++) {
    clock.advance(1_000);
    passed += admitted("a", 100);
  }
  expect(passed).toBe(100);
});

test("an idle address gets its burst again, and no more", () => {
  const { clock, admitted } = setUp();
  admitted("a", 20);
  clock.advance(3_600_000);
  expect(admitted("a", 50)).toBe(20);
});

test("each address has its own limit, loopback addresses too", () => {
  const { admitted } = setUp();
  expect([admitted("127.0.0.1", 30), admitted("127.0.0.2", 30), admitted("::1", 30)]).toEqual([20, 20, 20]);
});

test("50,000 addresses of one IPv6 line share one limit [D10]", () => {
  const { clock, limit } = setUp();
  const admitted = () =>
    Array.from({ length: 50_000 }, (_, n) => limit.admit(`2001:db8:1:2::${n.toString(16)}`)).filter(Boolean).length;
  expect(admitted()).toBe(20);
  clock.advance(1_000);
  expect(admitted()).toBe(10);
});

test("the lines of an IPv6 site share the limit of 16 lines, and another site has its own", () => {
  const { clock, limit } = setUp();
  const admitted = (site: string) =>
    Array.from({ length: 50_000 }, (_, n) => limit.admit(`2001:db8:${site}:${n.toString(16)}::1`)).filter(Boolean)
      .length;
  expect([admitted("1"), admitted("2")]).toEqual([20 * linesPerSite, 20 * linesPerSite]);
  clock.advance(1_000);
  expect(admitted("1")).toBe(10 * linesPerSite);
});

test("refused requests of a line take no token from its site", () => {
  const { limit, admitted } = setUp();
  expect(admitted("2001:db8:1:1::1", 10_000)).toBe(20);
  const others = Array.from({ length: 1_000 }, (_, n) => limit.admit(`2001:db8:1:${(n + 2).toString(16)}::1`));
  expect(others.filter(Boolean).length).toBe(20 * (linesPerSite - 1));
});

test("an IPv4-mapped IPv6 address shares the limit of its IPv4 address, and of no other", () => {
  const { admitted } = setUp();
  expect(admitted("192.0.2.1", 20)).toBe(20);
  for (const same of ["::ffff:192.0.2.1", "::ffff:c000:201", "0:0:0:0:0:FFFF:192.0.2.1"])
    expect(admitted(same, 5)).toBe(0);
  expect(admitted("::ffff:192.0.2.2", 30)).toBe(20);
});

test("an address keeps its used tokens when the table turns", () => {
  const { clock, admitted } = setUp(1, 20);
  clock.advance(19_900);
  admitted("a", 20);
  clock.advance(200);
  expect(admitted("a", 20)).toBe(0);
});

test("0 per second turns the limit off", () => {
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

test("idle addresses are removed", () => {
  const { clock, limit } = setUp();
  for (let n = 0; n < 1_000; n++) limit.admit(`a${n}`);
  for (let n = 0; n < 2; n++, clock.advance(2_000)) limit.admit("b");
  limit.admit("b");
  expect(limit.size).toBe(2);
});

/** Sends `count` requests at once. Each refused one is sent again after its retry time. Returns the tries of each. */
function triesOf(count: number, perIpPerSecond: number, perIpBurst: number, address = "a"): number[] {
  const { clock, limit } = setUp(perIpPerSecond, perIpBurst);
  const tries: number[] = new Array<number>(count).fill(0);
  const ask = (n: number) => {
    tries[n]!++;
    if (limit.admit(address)) return;
    // The network adds up to 50 ms.
    clock.after(limit.retryAfterSeconds(address) * 1_000 + ((n * 7) % 50), () => ask(n));
  };
  for (let n = 0; n < count; n++) ask(n);
  clock.advance(300_000);
  return tries;
}

test.each([
  ["60 with the defaults", 60, 10, 20, "a"],
  ["600 with the defaults", 600, 10, 20, "a"],
  ["40 with a burst below a second's requests", 40, 10, 5, "a"],
  ["100 of one IPv6 line", 100, 10, 20, "2001:db8:1:2::1"],
])(
  "of %s at once, each refused request is admitted at its second try [S19.2]",
  (_name, count, perSecond, burst, address) => {
    const tries = triesOf(count, perSecond, burst, address);
    expect(tries.filter((many) => many > 2)).toEqual([]);
    expect(tries.filter((many) => many === 1).length).toBe(burst);
  },
);

test("a client that ignores retry times gets no more than the limit, and retry times are at most a minute [S19.2]", () => {
  const { clock, limit } = setUp();
  let passed = 0;
  let longest = 0;
  for (let ms = 0; ms < 60_000; ms += 10) {
    if (limit.admit("a")) passed++;
    else longest = Math.max(longest, limit.retryAfterSeconds("a"));
    clock.advance(10);
  }
  expect(longest).toBe(60);
  expect(passed).toBeLessThanOrEqual(620);
  expect(passed).toBeGreaterThan(610);
  expect(limit.admit("b")).toBe(true);
  clock.advance(60_000);
  expect(limit.admit("a")).toBe(true);
});
