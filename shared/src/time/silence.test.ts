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

test("a peer that sends each second is not silent", () => {
  for (let seconds = 0; seconds < 60; seconds++) {
    silence.heard();
    real.advance(1_000);
  }
  expect(fallen).toBe(0);
});

test("a peer that stops sending falls silent within 5 s, and is reported once", () => {
  silence.heard();
  real.advance(3_900);
  expect(fallen).toBe(0);
  real.advance(1_100);
  expect(fallen).toBe(1);
  real.advance(60_000);
  expect(fallen).toBe(1);
});

test("neither a peer that never sent nor a cancelled watch is reported as silent", () => {
  real.advance(60_000);
  silence.heard();
  silence.cancel();
  real.advance(60_000);
  expect([fallen, real.pending]).toEqual([0, 1]);
});

test.each([3_000, 5_000, 8_000])(
  "data that a peer sent while our event loop was blocked for %s ms counts [C1]",
  (ms) => {
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
  },
);

test.each([3_000, 5_000, 8_000])(
  "a peer that is silent after our event loop was blocked for %s ms is reported [C1]",
  (ms) => {
    silence.heard();
    real.stall(ms);
    real.advance(5_000);
    expect(fallen).toBe(1);
  },
);

test("gRPC's keep-alive takes longer than the detection of silence", () => {
  expect(linkKeepAlive["grpc.keepalive_timeout_ms"]).toBeGreaterThan(linkSilenceMsMax + forgivenMsMax);
});
