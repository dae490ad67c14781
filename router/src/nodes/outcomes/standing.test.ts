/** Tests when the outcomes of a slot for one model are trouble. */
import { beforeEach, describe, expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { pauseMsMax, pauseMsMin, Standing, type Outcome } from "./standing.ts";

const [x, y, z] = ["x", "y", "z"].map((name) => asId<AccountId>(name)) as [AccountId, AccountId, AccountId];
let standing: Standing;
let nowMs: number;
beforeEach(() => {
  standing = new Standing();
  nowMs = 1_000_000;
});

function end(outcome: Outcome, account = x): void {
  standing.ended(standing.began(nowMs), outcome, account, nowMs);
}
const kind = () => standing.trouble?.kind ?? "none";

/** Advances the time until a single request may try the slot, and tries it. Returns the elapsed time. */
function tryOnce(outcome: Outcome): number {
  const waitMs = standing.trouble!.tryAtMs - nowMs;
  nowMs += waitMs;
  end(outcome);
  return waitMs;
}

function fail(times: number, account = x): void {
  for (let time = 0; time < times; time++) end("failed", account);
}

test("three failures in a row are trouble, two are not", () => {
  fail(2);
  expect(kind()).toBe("none");
  fail(1);
  expect(kind()).toBe("failing");
});

test("a slot without earlier failures is in trouble after three failures", () => {
  for (let time = 0; time < 10_000; time++) end("served");
  fail(3);
  expect(kind()).toBe("failing");
});

test("one failure in two requests is trouble within twenty requests, one in fifty is not", () => {
  for (let time = 0; time < 20 && kind() === "none"; time++) end(time % 2 === 0 ? "failed" : "served");
  expect(kind()).toBe("failing");
  const random = createRandom(1);
  standing = new Standing();
  let troubles = 0;
  for (let time = 0; time < 1_000; time++) {
    end(random.next() < 0.02 ? "failed" : "served");
    if (standing.trouble) troubles++;
  }
  expect(troubles).toBe(0);
});

test("slow answers put a slot in trouble of the kind `slow`", () => {
  for (let time = 0; time < 3; time++) end("slow");
  expect(kind()).toBe("slow");
});

test("ends that do not describe the slot change nothing", () => {
  for (let time = 0; time < 10; time++) end("untold");
  expect(standing.trouble).toBeUndefined();
});

test("old failures count little", () => {
  fail(2);
  nowMs += 3_600_000;
  fail(2);
  expect(kind()).toBe("none");
});

describe("an account has one vote:", () => {
  test("failures of one account are no trouble while others are served [C8]", () => {
    for (let time = 0; time < 200; time++) {
      end("failed", x);
      if (time % 20 === 0) end("served", y);
    }
    expect(kind()).toBe("none");
  });

  test("failures of most accounts are trouble", () => {
    end("served", y);
    for (const account of [x, z, x]) end("failed", account);
    expect(kind()).toBe("failing");
  });

  test("failures of one account are trouble once the votes of the others are old", () => {
    for (const account of [y, z]) end("served", account);
    nowMs += 120_000;
    fail(3);
    expect(kind()).toBe("failing");
  });

  test("a few failures are trouble if all served votes are older", () => {
    for (let account = 0; account < 1_000; account++) end("served", asId(`old-${account}`));
    let failures = 0;
    while (kind() === "none") fail(1, asId(`new-${failures++}`));
    expect(failures).toBeLessThanOrEqual(5);
  });
});

describe("a slot in trouble", () => {
  beforeEach(() => fail(3));

  test("is tried by one request at a time [C8]", () => {
    nowMs = standing.trouble!.tryAtMs;
    const first = standing.began(nowMs);
    const second = standing.began(nowMs);
    expect([first.isTrial, second.isTrial, standing.trouble!.tryAtMs]).toEqual([true, false, Infinity]);
  });

  test("is tried after pauses that double up to the longest", () => {
    const pauses = [1, 2, 3, 4, 5, 6].map(() => tryOnce("failed"));
    expect(pauses).toEqual([pauseMsMin, 4_000, 8_000, 16_000, pauseMsMax, pauseMsMax]);
  });

  test("is tried again soon after a request whose end does not describe it", () => {
    tryOnce("failed");
    tryOnce("untold");
    expect(tryOnce("served")).toBe(pauseMsMin);
  });

  test("is used again after at most five served requests, without pauses between them", () => {
    fail(100);
    expect(tryOnce("served")).toBeLessThanOrEqual(pauseMsMax);
    for (let time = 0; standing.trouble && time < 4; time++) expect(tryOnce("served")).toBe(0);
    expect(kind()).toBe("none");
  });

  test("ignores the outcomes of requests that began before the trouble", () => {
    standing = new Standing();
    const before = Array.from({ length: 50 }, () => standing.began(nowMs));
    nowMs += 1;
    fail(3);
    for (const begun of before) standing.ended(begun, "served", y, nowMs);
    expect(kind()).toBe("failing");
  });

  test("keeps its long pause if it relapses soon, and begins with the shortest pause otherwise", () => {
    for (let time = 0; time < 5; time++) tryOnce("failed");
    while (standing.trouble) tryOnce("served");
    fail(3);
    expect(standing.trouble!.tryAtMs - nowMs).toBe(pauseMsMax);
    while (standing.trouble) tryOnce("served");
    nowMs += 600_000;
    fail(3);
    expect(standing.trouble!.tryAtMs - nowMs).toBe(pauseMsMin);
  });
});

test("the first byte of a trial lets the next begin, up to four at a time, until one fails", () => {
  fail(3);
  nowMs = standing.trouble!.tryAtMs;
  const trials = [standing.began(nowMs)];
  expect(standing.trouble!.tryAtMs).toBe(Infinity);
  for (let n = 1; n < 4; n++) {
    standing.answered(trials.at(-1)!, nowMs);
    expect(standing.trouble!.tryAtMs).toBe(nowMs);
    trials.push(standing.began(nowMs));
  }
  standing.answered(trials.at(-1)!, nowMs);
  expect(standing.trouble!.tryAtMs).toBe(Infinity);
  standing.ended(trials[0]!, "failed", x, nowMs);
  expect(standing.trouble!.tryAtMs).toBeGreaterThan(nowMs);
  standing.answered(trials[1]!, nowMs);
  expect(standing.trouble!.tryAtMs).toBeGreaterThan(nowMs);
});
