import { afterEach, beforeEach, expect, test } from "vitest";
import { forgivenMsMax, LoopClock } from "./loop-clock.ts";
import { linkKeepAlive, linkSilenceMsMax, Silence } from "./silence.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";

let real: VirtualClock;
let clock: LoopClock;
let silence: Silence;
let fallen: number;
beforeEach(() => {
  real = new VirtualClock();
  clock = new LoopClock(real);
  fallen = 0;
  silence = new Silence(clock, linkSilenceMsMax, () => fallen++);
});
afterEach(() => clock[Symbol.dispose]());

test("a peer that speaks each second is not silent", () => {
  for (let seconds = 0; seconds < 60; seconds++) {
    silence.heard();
    real.advance(1_000);
  }
  expect(fallen).toBe(0);
});

test("one that speaks no more has fallen silent within 5 s, once", () => {
  silence.heard();
  real.advance(3_900);
  expect(fallen).toBe(0);
  real.advance(1_100);
  expect(fallen).toBe(1);
  real.advance(60_000);
  expect(fallen).toBe(1);
});

test("one that was never heard is not silent, nor is one that nobody listens to any more", () => {
  real.advance(60_000);
  silence.heard();
  silence.cancel();
  real.advance(60_000);
  expect([fallen, real.pending]).toEqual([0, 1]);
});

test.each([3_000, 5_000, 8_000])("our own loop stands still for %s ms: what was said meanwhile is heard", (ms) => {
  for (const beforeMs of [0, 900, 3_500]) {
    silence.heard();
    real.advance(beforeMs);
    real.stall(ms);
    real.advance(0); // timers fire first, then waiting bytes are read
    expect(fallen).toBe(0);
  }
  silence.heard();
  real.advance(3_900);
  expect(fallen).toBe(0);
});

test.each([3_000, 5_000, 8_000])("a peer that is silent after our own loop stood still for %s ms is noticed", (ms) => {
  silence.heard();
  real.stall(ms);
  real.advance(5_000);
  expect(fallen).toBe(1);
});

test("the keep-alive of gRPC does not come first", () => {
  expect(linkKeepAlive["grpc.keepalive_timeout_ms"]).toBeGreaterThan(linkSilenceMsMax + forgivenMsMax);
});
