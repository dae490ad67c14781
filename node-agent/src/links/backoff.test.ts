/** Agents that lose their router together come back one by one, each in time. */
import { expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { Backoff } from "./backoff.ts";

/** Returns the times at which an agent dials a router that has been gone since 0. */
function dials(seed: number, count: number): number[] {
  const clock = new VirtualClock(0);
  const random = createRandom(seed);
  const backoff = new Backoff(clock, () => random.next());
  return Array.from({ length: count }, () => {
    clock.advance(backoff.nextMs());
    return clock.monotonicMs();
  });
}

test("every delay is within its limit: half a second at first, doubled each time, at most four seconds", () => {
  for (let seed = 0; seed < 200; seed++) {
    const at = dials(seed, 12);
    const delays = at.map((ms, dial) => ms - (at[dial - 1] ?? 0));
    const bounds = [500, 1_000, 2_000, ...Array.from({ length: 9 }, () => 4_000)];
    expect(delays.filter((ms, dial) => ms < 0 || ms > bounds[dial]!)).toEqual([]);
  }
});

test("a thousand agents do not dial in step, and their first dials spread over the whole half second", () => {
  const agents = Array.from({ length: 1_000 }, (_, seed) => dials(seed, 5));
  for (let dial = 0; dial < 5; dial++) expect(new Set(agents.map((at) => at[dial])).size).toBeGreaterThan(990);
  const perTenth = Array.from({ length: 10 }, (_, tenth) => {
    const [from, to] = [tenth * 50, (tenth + 1) * 50];
    return agents.filter(([first]) => first! >= from && first! < to).length;
  });
  expect(Math.min(...perTenth)).toBeGreaterThan(50);
  expect(Math.max(...perTenth)).toBeLessThan(200);
});

test("a link that lasted five seconds resets the delay, and a shorter one does not", () => {
  const clock = new VirtualClock(0);
  const backoff = new Backoff(clock, () => 1);
  const lostAfter = (upMs: number) => {
    backoff.up();
    clock.advance(upMs);
    return backoff.nextMs();
  };
  expect([backoff.nextMs(), backoff.nextMs()]).toEqual([500, 1_000]);
  expect([lostAfter(4_999), lostAfter(5_000), backoff.nextMs()]).toEqual([2_000, 500, 500]);
});
