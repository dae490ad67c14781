import { expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { VoidAttempt } from "./usage-ledger.ts";
import { createVoidDeclarations } from "./void-declarations.ts";

/** A ledger whose database fails while `isAway`. */
class SimLedger {
  isAway = false;
  /** The database fails after this many batches. */
  batchesLeft = Infinity;
  readonly committed: VoidAttempt[] = [];

  async declareVoid(attempts: readonly VoidAttempt[]): Promise<void> {
    await Promise.resolve();
    if (this.isAway || this.batchesLeft-- <= 0) throw new Error("the database is away");
    this.committed.push(...attempts);
  }
}

function attemptOf(number: number): VoidAttempt {
  const ids = { accountId: asId<never>("a"), userId: asId<never>("u"), keyId: asId<never>("k") };
  const requestId = asId<VoidAttempt["requestId"]>(uuidv7({ now: () => number }));
  return { ...ids, requestId, attempt: 1, node: asId("n1"), model: asId("m"), factor: millicredits(1n) };
}

test("every declared attempt is committed, also after the database was away, without a further call [A1]", async () => {
  const clock = new VirtualClock();
  const ledger = new SimLedger();
  const declarations = createVoidDeclarations(ledger, clock);
  const attempts = Array.from({ length: 1_200 }, (_, n) => attemptOf(n));
  declarations.declare(attempts[0]!);
  await clock.advanceAsync(0);
  expect(ledger.committed).toEqual(attempts.slice(0, 1));

  ledger.isAway = true;
  for (const attempt of attempts.slice(1)) declarations.declare(attempt);
  await clock.advanceAsync(60_000);
  expect(ledger.committed).toHaveLength(1);

  ledger.isAway = false;
  await clock.advanceAsync(1_000);
  expect(ledger.committed).toEqual(attempts);
});

test("many refused attempts make a thousand rows and then twenty a second, and are not declared again [A1]", async () => {
  const clock = new VirtualClock();
  const ledger = new SimLedger();
  await using declarations = createVoidDeclarations(ledger, clock);
  const givenUp = [attemptOf(1), attemptOf(2)];
  declarations.declare(givenUp[0]!);
  for (let second = 0; second < 60; second++) {
    for (let n = 0; n < 500; n++) declarations.declareRefused(attemptOf(1_000 + second * 500 + n));
    await clock.advanceAsync(1_000);
  }
  declarations.declare(givenUp[1]!);
  await clock.advanceAsync(0);
  expect(ledger.committed.length - 2).toBe(1_000 + 59 * 20);
  ledger.committed.length = 0;
  declarations.declareAgain();
  await clock.advanceAsync(0);
  expect(ledger.committed).toEqual(givenUp);
});

test("while the database is away, at most 10,000 refused attempts and 100,000 in all wait, and each lost one is reported [A1]", async () => {
  const clock = new VirtualClock();
  const ledger = Object.assign(new SimLedger(), { isAway: true });
  let lost = 0;
  const declarations = createVoidDeclarations(ledger, clock, { voidLost: () => lost++ });
  const attempt = attemptOf(1);
  for (let n = 0; n < 9_500; n++) declarations.declare(attempt);
  for (let n = 0; n < 1_000; n++) declarations.declareRefused(attempt);
  for (let n = 0; n < 90_003; n++) declarations.declare(attempt);
  expect(lost).toBe(3);
  await clock.advanceAsync(60_000);
  ledger.isAway = false;
  await clock.advanceAsync(1_000);
  expect(ledger.committed).toHaveLength(100_000);
  declarations.declare(attempt);
  expect(lost, "there is room again").toBe(3);
  await declarations[Symbol.asyncDispose]();
});

test("a stopping router commits the remaining voids, and waits at most 5 s for the database", async () => {
  const clock = new VirtualClock();
  const ledger = new SimLedger();
  const declarations = createVoidDeclarations(ledger, clock);
  declarations.declare(attemptOf(1));
  await declarations[Symbol.asyncDispose]();
  expect(ledger.committed).toHaveLength(1);

  const stopping = createVoidDeclarations(Object.assign(ledger, { isAway: true }), clock);
  stopping.declare(attemptOf(2));
  let isClosed = false;
  const closed = stopping[Symbol.asyncDispose]().then(() => (isClosed = true));
  await clock.advanceAsync(4_900);
  expect(isClosed).toBe(false);
  await clock.advanceAsync(200);
  await closed;
});

test("voids of the last hour, and no older ones, are declared again after a failover of the database [R3]", async () => {
  const clock = new VirtualClock();
  const ledger = new SimLedger();
  await using declarations = createVoidDeclarations(ledger, clock);
  const attempts = [1, 2, 3].map(attemptOf);
  for (const attempt of attempts) {
    declarations.declare(attempt);
    await clock.advanceAsync(1_800_000);
  }
  expect(ledger.committed).toEqual(attempts);
  const last = attemptOf(4);
  declarations.declare(last);
  await clock.advanceAsync(0);
  declarations.declareAgain();
  await clock.advanceAsync(0);
  expect(ledger.committed.slice(4)).toEqual([attempts[2], last]);
});

test("repeated declarations follow new attempts, take no room from them, and are bounded", async () => {
  const clock = new VirtualClock();
  const ledger = new SimLedger();
  let lost = 0;
  const declarations = createVoidDeclarations(ledger, clock, { voidLost: () => lost++ });
  const [old, fresh] = [attemptOf(1), attemptOf(2)];
  const committed = async () => (await clock.advanceAsync(1_000), ledger.committed.splice(0));
  for (let n = 0; n < 100_000; n++) declarations.declare(old);
  expect(await committed()).toHaveLength(100_000);

  ledger.batchesLeft = 2;
  declarations.declareAgain();
  declarations.declare(fresh);
  declarations.declareRefused(fresh);
  expect(lost).toBe(0);
  const first = await committed();
  expect(first.slice(500), "new attempts follow the running batch").toEqual([fresh, fresh]);

  // A second failover comes before the rest is committed.
  declarations.declareAgain();
  ledger.batchesLeft = Infinity;
  const again = await committed();
  expect(again).toHaveLength(100_000);
  expect(again.at(-1), "the oldest was dropped").toBe(fresh);
  await declarations[Symbol.asyncDispose]();
});

test("a stopping router commits repeated declarations", async () => {
  const clock = new VirtualClock();
  const ledger = new SimLedger();
  const declarations = createVoidDeclarations(ledger, clock);
  declarations.declare(attemptOf(1));
  await clock.advanceAsync(0);
  ledger.isAway = true;
  declarations.declareAgain();
  await clock.advanceAsync(0);
  ledger.isAway = false;
  const closed = declarations[Symbol.asyncDispose]();
  await clock.advanceAsync(1_000);
  await closed;
  expect(ledger.committed).toHaveLength(2);
});
