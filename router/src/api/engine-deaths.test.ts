import { beforeEach, describe, expect, test } from "vitest";
import type { ApiError } from "@weiche/shared/errors.ts";
import { asId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { EngineDeaths, forgottenAfterMs, sharedBarMs, suspectsMax, type SuspectBody } from "./engine-deaths.ts";
import type { Exchange } from "./exchange.ts";

const body = (more: Partial<SuspectBody> = {}): SuspectBody => ({
  ...{ accountId: asId("account"), model: asId("m"), digest: "digest" },
  ...more,
});
const poison = body();

let clock: VirtualClock;
let deaths: EngineDeaths;
beforeEach(() => {
  clock = new VirtualClock();
  deaths = new EngineDeaths(clock, Buffer.alloc(32, 1));
});

function isBarred(of: SuspectBody): boolean {
  try {
    deaths.refuseBarred(of);
    return false;
  } catch (error) {
    return (error as ApiError).kind === "request_barred";
  }
}

/** Ends an answer to this body with the outcome. */
function ends(of: SuspectBody, outcome: Exchange["outcome"], engineDeath?: "alone" | "shared"): void {
  let settle = () => {};
  const exchange = { outcome, onSettled: (callback: () => void) => (settle = callback) };
  deaths.watch(of, exchange as unknown as Exchange, { engineDeath } as never);
  settle();
}

describe("a body that was alone on an engine that died", () => {
  test("is barred for ten minutes after the second death, and then forgotten [C7]", () => {
    deaths.died(poison, "alone");
    expect(isBarred(poison)).toBe(false);
    deaths.died(poison, "alone");
    clock.advance(forgottenAfterMs - 1);
    expect(isBarred(poison)).toBe(true);
    clock.advance(1);
    expect([isBarred(poison), deaths.suspects]).toEqual([false, 0]);
  });

  test("is not barred for deaths more than ten minutes apart", () => {
    deaths.died(poison, "alone");
    clock.advance(forgottenAfterMs);
    deaths.died(poison, "alone");
    expect(isBarred(poison)).toBe(false);
  });

  test("is not barred for another account or model, and no other body is", () => {
    for (let times = 0; times < 2; times++) deaths.died(poison, "alone");
    for (const other of [{ digest: "other" }, { accountId: asId("other") }, { model: asId("other") }] as const)
      expect(isBarred(body(other as Partial<SuspectBody>))).toBe(false);
  });
});

describe("a body that shared an engine that died", () => {
  test("is barred for 30 s after the second death, and for ten minutes after the third [C7]", () => {
    for (let times = 0; times < 2; times++) deaths.died(poison, "shared");
    expect(isBarred(poison)).toBe(true);
    clock.advance(sharedBarMs);
    expect(isBarred(poison)).toBe(false);
    deaths.died(poison, "shared");
    clock.advance(forgottenAfterMs - 1);
    expect(isBarred(poison)).toBe(true);
  });

  test("is cleared only by a whole answer", () => {
    deaths.died(poison, "shared");
    for (const outcome of ["client-gone", "broken", "timeout", "stalled"] as const) ends(poison, outcome);
    expect(deaths.suspects).toBe(1);
    ends(poison, "answered");
    expect(deaths.suspects).toBe(0);
    deaths.died(poison, "alone");
    expect(isBarred(poison)).toBe(false);
  });
});

test("a death after the first byte counts like a death before it", () => {
  ends(poison, "broken", "alone");
  ends(poison, "broken", "alone");
  expect(isBarred(poison)).toBe(true);
});

test("only the latest ten thousand suspects are kept", () => {
  for (let at = 0; at < suspectsMax + 10; at++) deaths.died(body({ digest: String(at) }), "alone");
  expect(deaths.suspects).toBe(suspectsMax);
  deaths.died(body({ digest: "0" }), "alone");
  deaths.died(body({ digest: "500" }), "alone");
  expect([isBarred(body({ digest: "0" })), isBarred(body({ digest: "500" }))]).toEqual([false, true]);
});
