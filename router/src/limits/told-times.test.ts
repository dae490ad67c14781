/** Official clients retry twice. They wait as long as `retry-after` says, if this is at most 60 s. */
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { asId, type AccountId, type RequestId } from "@weiche/shared/ids.ts";
import { expect, test } from "vitest";
import type { AccountLimits } from "./limiter.ts";
import { MemoryLimiter } from "./memory-limiter.ts";
import { ToldTimes } from "./told-times.ts";

const account = asId<AccountId>("a");
const retriesMax = 2;

class Clients {
  readonly #clock = new VirtualClock();
  readonly #limiter = new MemoryLimiter(this.#clock);
  readonly #limits: AccountLimits;
  #requests = 0;

  constructor(limits: Partial<AccountLimits>) {
    this.#limits = { perMinute: 1_000, parallel: 1_000, ...limits };
  }

  advance(seconds: number): void {
    this.#clock.advance(seconds * 1_000);
  }

  /** Sends this many requests at once. Returns the retry times that each client got, and whether it gave up. */
  send(count: number, answerSeconds: number): { readonly told: number[]; gaveUp: boolean }[] {
    return Array.from({ length: count }, () => {
      const client = { told: [], gaveUp: false };
      this.#ask(client, answerSeconds);
      return client;
    });
  }

  #ask(client: { readonly told: number[]; gaveUp: boolean }, answerSeconds: number): void {
    const request = asId<RequestId>(`r${this.#requests++}`);
    const decision = this.#limiter.enter(account, request, this.#limits);
    if (decision.admitted) this.#clock.after(answerSeconds * 1_000, () => this.#limiter.leave(account, request));
    else if (client.told.length === retriesMax) client.gaveUp = true;
    else {
      client.told.push(decision.retryAfterMs / 1_000);
      this.#clock.after(decision.retryAfterMs, () => this.#ask(client, answerSeconds));
    }
  }
}

/** The retry times of a request sent `atSeconds` after five answers of this length began, on five places. */
function toldBehind(answerSeconds: number, atSeconds: number, earlier: readonly number[]) {
  const clients = new Clients({ parallel: 5 });
  for (const seconds of earlier) clients.send(1, seconds);
  if (earlier.length > 0) clients.advance(Math.max(...earlier));
  clients.send(5, answerSeconds);
  clients.advance(atSeconds);
  const [client] = clients.send(1, 1);
  clients.advance(200);
  return client!;
}

const ages = [0, 0.5, 1, 3, 10, 30, 41];

test.each([
  ["of unknown length", []],
  ["of the usual length", [42, 42, 42]],
  ["that take longer than most", [2, 2, 42, 50, 60]],
])(
  "a request behind five answers of 42 s is admitted with two retries, if these are answers %s [S19.2]",
  (_, earlier) => {
    for (const age of ages) expect(toldBehind(42, age, earlier)).toMatchObject({ gaveUp: false });
  },
);

test.each([
  [8, 5, 42],
  [100, 20, 2],
])("%d requests at once on %d places with answers of %d s are all admitted with two retries [S19.2]", (...numbers) => {
  const [count, parallel, answerSeconds] = numbers;
  const clients = new Clients({ parallel });
  const all = clients.send(count, answerSeconds);
  clients.advance(200);
  expect(all.filter(({ gaveUp }) => gaveUp)).toEqual([]);
});

test.each([
  ["almost all short", [...Array<number>(29).fill(0.05), 3, 3, 3]],
  ["all short", Array<number>(32).fill(0.05)],
])(
  "8 requests at once on 5 places with answers of 12 s are all admitted with two retries, if earlier answers were %s [S19.2]",
  (_, earlier) => {
    const clients = new Clients({ parallel: 5 });
    for (const seconds of earlier) {
      clients.send(1, seconds);
      clients.advance(seconds);
    }
    const all = clients.send(8, 12);
    clients.advance(60);
    expect(all.map(({ told }) => told)).toEqual([...Array(5).fill([]), ...Array(3).fill([1, 14])]);
    expect(all.filter(({ gaveUp }) => gaveUp)).toEqual([]);
  },
);

test.each([
  [-51, false],
  [-50, true],
  [0, true],
  [2_000, true],
  [2_001, false],
])("a request that comes %i ms after a told time has come back: %s", (ms, hasComeBack) => {
  const told = new ToldTimes();
  told.add(10_000);
  expect(told.comeBack(10_000 + ms)).toBe(hasComeBack);
  expect(told.comeBack(10_000 + ms)).toBe(false);
});

test("a request that must wait for 75 s gets 60 s, and then the rest [S19.2]", () => {
  expect(toldBehind(75, 0, [75, 75, 75])).toEqual({ told: [60, 15], gaveUp: false });
});

test.each([
  [[119, 119, 119], 119, false],
  [[125, 125, 125], 125, true],
  // Without known lengths, a router expects nine times the age, of 0.75 s at least.
  [[], 67, false],
  [[], 68, true],
  // An answer that is older than all known ones is expected to take nine times its age, too.
  [[2, 2, 2], 20, false],
  [[2, 2, 2], 21, true],
])("after answers of %j s, a request behind new answers of %d s gives up: %s", (earlier, answerSeconds, gaveUp) => {
  expect(toldBehind(answerSeconds, 0, earlier).gaveUp).toBe(gaveUp);
});

test.each([
  [90, 0],
  [91, 1],
])("of %d requests at once where 30 a minute are allowed, %d give up after two retries", (count, lost) => {
  const clients = new Clients({ perMinute: 30 });
  const all = clients.send(count, 1);
  clients.advance(200);
  expect(all.filter(({ gaveUp }) => gaveUp)).toHaveLength(lost);
});
