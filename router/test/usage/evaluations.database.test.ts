import { describe, expect, test } from "vitest";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { createJobs } from "@weiche/shared/time/job.ts";
import type { Database } from "../../src/db/database.ts";
import { jobOfOneRouter } from "../../src/db/lease.ts";
import { until } from "../db/database-fixture.ts";
import {
  accountId,
  accountPerTest,
  accounts,
  clock,
  database,
  evaluations,
  evaluator,
  failures,
  forwardTo,
  met,
  openEvaluator,
  quota,
  server,
  spend,
  spendAndEvaluate,
} from "./evaluator-rig.ts";

await accountPerTest();

describe("evaluations", () => {
  test("that run at the same time add each notice once", async () => {
    const other = openEvaluator(await server.openAgain(database));
    await spend(quota);
    const found = await Promise.all([evaluator, other, evaluator, other].map((each) => each.evaluate()));
    expect(found.reduce((sum, { notices: fresh }) => sum + fresh, 0)).toBe(3);
    expect(found.reduce((sum, { changed }) => sum + changed, 0)).toBe(1);
    expect(await met()).toBe("insufficient_quota");
  });

  test("run every minute on one router, and on another one when it is gone [S14.4 S20.6]", async () => {
    const routers = [startRouter(database), startRouter(await server.openAgain(database))];
    await spend(quota);
    for (const minute of [1, 2, 3]) await tickUntil(minute);
    await Promise.all(routers.map((router) => router[Symbol.asyncDispose]())); // running evaluations end
    expect(evaluations.length).toBe(3);
    expect(failures).toEqual([]);
    expect(await met()).toBe("insufficient_quota");
    await using _another = startRouter(database);
    await tickUntil(4);
    await database.pool.query("update leases set holder = $1, held_until = now()", [uuidv7(clock)]); // killed a while ago
    await tickUntil(5);
  });

  test("without new usage change nothing and add no notice", async () => {
    await spendAndEvaluate(quota);
    const number = async () => (await database.pool.query("select number from change_counter")).rows[0] as unknown;
    const before = await number();
    expect(await evaluator.evaluate()).toMatchObject({ changed: 0, notices: 0 });
    expect(await number()).toEqual(before);
  });

  test("of the other accounts continue when the charge of one account fails", async () => {
    const other = await accounts.create({ name: "B", ownerEmail: "b@example.com", package: "Starter" });
    const broken = `check (account_id <> '${other.id}' or period_start < '2026-12-01') not valid`;
    await database.pool.query("update accounts set next_charge_at = 'epoch' where id = $1", [other.id]); // charged first
    await database.pool.query(`alter table invoice_lines add constraint broken ${broken}`);
    forwardTo("2026-12-14T00:00");
    await spend(quota);
    await expect(evaluator.evaluate()).rejects.toThrow("broken");
    await database.pool.query("alter table invoice_lines drop constraint broken");
    expect((await accounts.subscriptions.invoice(accountId)).length).toBe(2);
    expect(await met()).toBe("insufficient_quota");
    await evaluator.evaluate();
    expect((await accounts.subscriptions.invoice(other.id)).length).toBe(2);
  });

  test("write the invoice lines of periods that have begun", async () => {
    forwardTo("2027-01-14T00:00");
    await evaluator.evaluate();
    expect((await accounts.subscriptions.invoice(accountId)).length).toBe(3);
  });
});

/** Starts the part of a router that evaluates. */
function startRouter(of: Database): AsyncDisposable {
  const events = { jobRan() {}, jobFailed: (_name: string, error: unknown) => void failures.push(error) };
  const job = jobOfOneRouter(
    createJobs(clock, () => 0.5, events),
    of.pool,
    uuidv7(clock),
  );
  const own = openEvaluator(of);
  return job("credits", 60_000, () => own.evaluate());
}

/** Advances the clock by a minute and waits for the evaluation in the real database. */
async function tickUntil(evaluationsMin: number): Promise<void> {
  await clock.advanceAsync(60_000);
  await until("the evaluation has run", 10_000, () => evaluations.length >= evaluationsMin);
}
