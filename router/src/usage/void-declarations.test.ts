import { expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7 } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import type { VoidAttempt } from "./usage-ledger.ts";
import { createVoidDeclarations } from "./void-declarations.ts";

/** A ledger whose database is away as long as it is told. */
class SimLedger {
  isAway = false;
  readonly committed: VoidAttempt[] = [];

  async declareVoid(attempts: readonly VoidAttempt[]): Promise<void> {
    await Promise.resolve();
    if (this.isAway) throw new Error("the database is away");
    this.committed.push(...attempts);
  }
}

function attemptOf(number: number): VoidAttempt {
  const ids = { accountId: asId<never>("a"), userId: asId<never>("u"), keyId: asId<never>("k") };
  const requestId = asId<VoidAttempt["requestId"]>(uuidv7({ now: () => number }));
  return { ...ids, requestId, attempt: 1, node: asId("n1"), model: asId("m"), factor: millicredits(1n) };
}

test("every attempt that is declared is committed, also after the database was away, and no other call is needed", async () => {
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

test("a router that stops commits what is left, and waits for a database that is away for 5 s only", async () => {
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

test("what was declared within the last hour is declared again to a database that was taken over, and no more", async () => {
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
