/** When requests that fail in a row make an engine suspect. */
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

test("three failures in a row of two accounts are a suspicion, one alone, without a probe", async () => {
  await fail("xy");
  expect(suspicions).toBe(0);
  await fail("xyxyxy");
  expect([suspicions, probes]).toEqual([1, 0]);
});

describe("failures of one account alone", () => {
  test("are none while the probe passes, which is asked once in half a minute", async () => {
    await fail("x".repeat(500));
    expect([suspicions, probes]).toEqual([0, 1]);
    clock.advance(30_000);
    await fail("xx");
    expect([suspicions, probes]).toEqual([0, 2]);
  });

  test("are one if the probe fails, too", async () => {
    probe = () => Promise.reject(new Error("500"));
    await fail("xx");
    expect(probes).toBe(0);
    await fail("x");
    expect([suspicions, probes]).toEqual([1, 1]);
  });

  test("are none if the probe is late, since the engine may be busy", async () => {
    probe = (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("late"))));
    await fail("xxx");
    clock.advance(60_000);
    await fail("");
    expect(suspicions).toBe(0);
  });

  test("are none if another request is served before the probe fails", async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    probe = () => promise;
    await fail("xxx");
    doubts.served(endpoint);
    reject(new Error("500"));
    await fail("");
    expect(suspicions).toBe(0);
  });
});

test("an answer that is whole ends the row, and so does output unless answers failed after theirs", async () => {
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
  expect(await fail("xyxyvwz"), "two accounts of one person would be served for nothing").toBe(false);
  expect(suspicions).toBe(1);
});

test("while no restart may follow, an engine is doubted as long as it fails its probe", async () => {
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

  test("of four accounts are no suspicion while the probe passes, and of five they are", async () => {
    expect(await fail("xyxyxyxyvwvwvw", provoked)).toBe(false);
    expect([suspicions, probes]).toEqual([0, 1]);
    expect(await fail("z", provoked)).toBe(true);
    expect([suspicions, probes]).toEqual([1, 1]);
  });

  test("of two accounts are a suspicion if the probe fails, too", async () => {
    probe = () => Promise.reject(new Error("500"));
    expect(await fail("xyx", provoked)).toBe(false);
    expect(suspicions).toBe(1);
    expect(await fail("x", provoked)).toBe(true);
  });

  test("of four accounts end with an answer that is whole", async () => {
    await fail("wxyv", provoked);
    doubts.served(endpoint);
    await fail("zwxy", provoked);
    expect(suspicions).toBe(0);
  });

  test("do not add to those that no request can provoke", async () => {
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

test("an engine that a restart did not help is restarted after pauses that double", async () => {
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
