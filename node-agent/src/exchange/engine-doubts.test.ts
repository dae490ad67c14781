/** When consecutive failed requests make an engine suspected. */
import { beforeEach, describe, expect, test } from "vitest";
import { asId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { EngineDoubts, pauseMsMin } from "./engine-doubts.ts";

let clock: VirtualClock;
let doubts: EngineDoubts;
let endpoint: { origin: string };
let suspicions: number;
let probes: number;
let probe: (signal: AbortSignal) => Promise<unknown>;
beforeEach(() => {
  clock = new VirtualClock(1_000_000);
  doubts = new EngineDoubts(clock);
  endpoint = { origin: "http://engine" };
  [suspicions, probes] = [0, 0];
  probe = () => Promise.resolve();
});

/** Returns whether the engine was doubted after the last failure. */
async function fail(accounts: string, { hadOutput = false, model = "m", isProvokable = false } = {}): Promise<boolean> {
  let isDoubted = false;
  for (const account of accounts) {
    isDoubted = doubts.failed({
      ...{ endpoint, slot: asId("s"), model: asId(model), account: asId(account), hadOutput, isProvokable },
      probe: (signal) => (probes++, probe(signal)),
      suspect: () => void suspicions++,
    });
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  }
  return isDoubted;
}

test("three consecutive failures of two accounts cause one suspicion, without a probe [C8]", async () => {
  await fail("xy");
  expect(suspicions).toBe(0);
  await fail("xyxyxy");
  expect([suspicions, probes]).toEqual([1, 0]);
});

describe("failures of one account alone", () => {
  test("cause no suspicion while the probe passes, and the probe runs at most once in thirty seconds [C8]", async () => {
    await fail("x".repeat(500));
    expect([suspicions, probes]).toEqual([0, 1]);
    clock.advance(30_000);
    await fail("xx");
    expect([suspicions, probes]).toEqual([0, 2]);
  });

  test("cause a suspicion if the probe fails too", async () => {
    probe = () => Promise.reject(new Error("500"));
    await fail("xx");
    expect(probes).toBe(0);
    await fail("x");
    expect([suspicions, probes]).toEqual([1, 1]);
  });

  test("cause no suspicion if the probe is late, because the engine may be busy", async () => {
    probe = (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("late"))));
    await fail("xxx");
    clock.advance(60_000);
    await fail("");
    expect(suspicions).toBe(0);
  });

  test("cause no suspicion if another request succeeds before the probe fails", async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    probe = () => promise;
    await fail("xxx");
    doubts.served(endpoint);
    reject(new Error("500"));
    await fail("");
    expect(suspicions).toBe(0);
  });
});

test("a complete answer resets the count, and first output does too unless answers failed after output", async () => {
  await fail("xy");
  doubts.served(endpoint);
  await fail("xy");
  doubts.output(endpoint);
  await fail("xy");
  expect(suspicions).toBe(0);
  await fail("z");
  expect(suspicions).toBe(1);
  endpoint = { origin: "http://other" };
  await fail("xy", { hadOutput: true, model: "n" });
  doubts.output(endpoint);
  await fail("z", { hadOutput: true, model: "n" });
  expect(suspicions).toBe(2);
});

test("an engine is doubted from the third failure of two accounts on, but not while no restart may follow", async () => {
  expect(await fail("xy")).toBe(false);
  expect(await fail("x")).toBe(true);
  expect(await fail("x")).toBe(true);
  endpoint = { origin: "http://engine" };
  expect(await fail("xyxyvwz"), "the requests of two accounts of one person would be free").toBe(false);
  expect(suspicions).toBe(1);
});

test("while no restart may follow, an engine is doubted only while it fails its probe", async () => {
  await fail("xyz");
  endpoint = { origin: "http://engine" };
  probe = () => Promise.reject(new Error("500"));
  await fail("xyx");
  expect(await fail("x")).toBe(true);
  clock.advance(30_000);
  probe = () => Promise.resolve();
  await fail("x");
  expect(await fail("x")).toBe(false);
  expect(suspicions).toBe(1);
});

describe("failures that a request can provoke", () => {
  const provoked = { hadOutput: true, isProvokable: true };

  test("cause no suspicion for four accounts while the probe passes, and a suspicion for five [C8]", async () => {
    expect(await fail("xyxyxyxyvwvwvw", provoked)).toBe(false);
    expect([suspicions, probes]).toEqual([0, 1]);
    expect(await fail("z", provoked)).toBe(true);
    expect([suspicions, probes]).toEqual([1, 1]);
  });

  test("cause a suspicion for two accounts if the probe fails too", async () => {
    probe = () => Promise.reject(new Error("500"));
    expect(await fail("xyx", provoked)).toBe(false);
    expect(suspicions).toBe(1);
    expect(await fail("x", provoked)).toBe(true);
  });

  test("of four accounts are reset by a complete answer", async () => {
    await fail("wxyv", provoked);
    doubts.served(endpoint);
    await fail("zwxy", provoked);
    expect(suspicions).toBe(0);
  });

  test("do not add to failures that no request can provoke", async () => {
    await fail("xy");
    await fail("xyxy", provoked);
    expect(suspicions).toBe(0);
    await fail("x");
    expect(suspicions).toBe(1);
  });
});

test("an engine that fails one account is doubted only after it has failed a probe", async () => {
  expect(await fail("xxxx")).toBe(false);
  clock.advance(30_000);
  probe = () => Promise.reject(new Error("500"));
  expect(await fail("x")).toBe(false);
  expect(await fail("x")).toBe(true);
});

test("an engine that still fails after a restart is restarted again after pauses that double", async () => {
  const restarted = async () => {
    endpoint = { origin: "http://engine" };
    await fail("xyz");
  };
  await restarted();
  await restarted();
  clock.advance(pauseMsMin - 1);
  await restarted();
  expect(suspicions).toBe(1);
  clock.advance(1);
  await restarted();
  expect(suspicions).toBe(2);
  clock.advance(pauseMsMin);
  await restarted();
  expect(suspicions).toBe(2);
  clock.advance(pauseMsMin);
  await restarted();
  expect(suspicions).toBe(3);
  await fail("xyz", { model: "another" });
  expect(suspicions).toBe(3);
  endpoint = { origin: "http://another" };
  await fail("xyz", { model: "another" });
  expect(suspicions).toBe(4);
});
