/** Requests that run while their account's credits, package, period or day ends: each counts once, where it was accepted. */
import { expect, test } from "vitest";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, uuidv7, type AccountId } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { createAccountLife } from "../../src/accounts/account-life.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import { germanDay, timeZone } from "../../src/subscriptions/billing-period.ts";
import { viewCredits } from "../../src/usage/credits-view.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import {
  accountId,
  accountPerTest,
  accounts,
  clock,
  database,
  evaluator,
  forwardTo,
  keyId,
  met,
  newAccount,
  notices,
  quota,
  spendAndEvaluate,
  userId,
} from "./evaluator-rig.ts";
import { makeRecord } from "./usage-records.ts";

await accountPerTest();

const berlin = (text: string) => Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone).epochMilliseconds;
const random = createRandom(7);

/** Commits records of requests that were accepted at these times, perhaps long ago, in one batch. */
async function commitOf(...answers: readonly (readonly [acceptedMs: number, credits: number])[]): Promise<void> {
  await makeUsageDays(
    database.pool,
    answers.map(([acceptedMs]) => acceptedMs),
  );
  const records = answers.map(([acceptedMs, spent]) =>
    makeRecord(random, acceptedMs, {
      ...{ requestId: asId(uuidv7({ now: () => acceptedMs })), accountId, userId, keyId },
      ...{ promptTokens: spent, completionTokens: 0, factor: millicredits(1000n) },
    }),
  );
  await commitUsage(
    database.pool,
    records.map((record) => ({ node: asId("node-1"), record })),
  );
}

/** Returns the account's credits in each period, by its beginning. */
async function periods(of: AccountId = accountId): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ at: string; credits: bigint }>(
    `select case when period_start = '-infinity' then 'none' else
        to_char(period_start at time zone '${timeZone}', 'YYYY-MM-DD HH24:MI') end as at, credits
      from usage_totals where account_id = $1 and scope = 'account' order by period_start`,
    [of],
  );
  return Object.fromEntries(rows.map(({ at, credits }) => [at, Number(credits) / 1_000]));
}

async function days(): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ day: string; requests: bigint }>(
    "select day, sum(requests)::bigint as requests from usage_days where account_id = $1 group by day order by day",
    [accountId],
  );
  return Object.fromEntries(rows.map(({ day, requests }) => [day, Number(requests)]));
}

const credits = () => viewCredits(database, new MemoryLimiter(clock), clock, accountId, userId);

test("requests at the same time that use the last credits are all counted, once, and cost nothing more [S15.4]", async () => {
  await commitOf([clock.now(), quota - 1]);
  await evaluator.evaluate();
  expect(await met()).toBe("admitted");
  const invoiced = await accounts.subscriptions.invoice(accountId);
  // Twenty answers end while two routers evaluate.
  const answers = Array.from({ length: 20 }, () => commitOf([clock.now(), 100]));
  await Promise.all([...answers, evaluator.evaluate(), evaluator.evaluate()]);
  await Promise.all([evaluator.evaluate(), evaluator.evaluate()]);
  expect(await met()).toBe("insufficient_quota");
  expect(await periods()).toEqual({ "2026-11-14 10:30": quota - 1 + 2_000 });
  expect(await notices()).toEqual(["quota-75", "quota-90", "quota-100"]);
  expect(await credits()).toMatchObject({ used: `${quota + 1_999}.000`, remaining: "-1999.000" });
  expect(await accounts.subscriptions.invoice(accountId)).toEqual(invoiced);
  forwardTo("2026-12-14T00:00");
  expect(await met()).toBe("admitted");
  expect(await credits()).toMatchObject({ used: "0.000", remaining: `${quota}.000` });
});

test.each([
  ["cancelled", { action: "cancel" }, "no_package", { quota: null, used: null, remaining: null }],
  ["downgraded", { action: "downgrade", package: "Starter" }, "admitted", { used: "0.000", remaining: `${quota}.000` }],
] as const)(
  "an answer that runs while its package is %s at the end of a period counts in the old period",
  async (_, change, after, shown) => {
    await newAccount({ package: "Pro" });
    await accounts.subscriptions.change(accountId, change);
    const end = berlin("2026-12-14T00:00");
    clock.advance(end - 1 - clock.now());
    expect(await met()).toBe("admitted");
    clock.advance(1 + 500_000);
    await accounts.subscriptions.chargeWhatIsDue();
    expect(await met()).toBe(after);
    // More than the whole quota of the smaller package, accepted in the last millisecond of the larger one.
    await commitOf([end - 1, quota + 1]);
    await evaluator.evaluate();
    expect(await periods()).toEqual({ "2026-11-14 10:30": quota + 1 });
    expect(await met()).toBe(after);
    expect(await credits()).toMatchObject(shown);
  },
);

test("an answer that runs while its account is deleted is counted, and nothing fails", async () => {
  const begunMs = clock.now();
  clock.advance(60_000);
  await createAccountLife({ database, clock, portalUrl: "https://portal.example" }).delete(accountId);
  await commitOf([begunMs, 30]);
  await evaluator.evaluate();
  expect(await periods()).toEqual({ "2026-11-14 10:30": 30 });
  expect(await met()).toBe("revoked");
});

test("an answer accepted in a trial counts there, although an upgrade has begun a new period meanwhile", async () => {
  await newAccount({});
  await accounts.subscriptions.change(accountId, { action: "trial" });
  const begunMs = clock.now() + 1;
  clock.advance(60_000);
  await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Pro" });
  await commitOf([begunMs, quota], [clock.now(), 7]);
  await evaluator.evaluate();
  expect(Object.values(await periods())).toEqual([quota, 7]);
  expect(await credits()).toMatchObject({ used: "7.000" });
});

test.each([
  ["the longest day", "2027-10-31", "2027-08-31", "2027-09-30 00:00", 25],
  ["the shortest day", "2027-03-28", "2027-02-28", "2027-02-28 12:00", 23],
])(
  "on %s each request counts on its German day and in its period, which begins at German midnight",
  async (...facts) => {
    const [, day, ordered, before, hours] = facts;
    forwardTo(`${ordered}T12:00`);
    await newAccount({ package: "Starter" });
    const start = berlin(`${day}T00:00`);
    const end = start + hours * 3_600_000;
    expect(germanDay(end - 1)).toBe(day);
    expect(germanDay(end)).not.toBe(day);
    clock.advance(end + 3_600_000 - clock.now());
    const answers: [number, number][] = [
      [start - 1, 100],
      [end - 1, 1_000],
    ];
    for (let at = start - 1_800_000; at < end + 1_800_000; at += 1_800_000) answers.push([at, 1]);
    await commitOf(...answers);
    expect(await periods()).toEqual({ [before]: 101, [`${day} 00:00`]: 2 * hours + 1 + 1_000 });
    expect(Object.values(await days())).toEqual([2, 2 * hours + 1, 1]);
  },
);

test("a router whose clock is ahead at the end of a period neither gives nor takes credits", async () => {
  const end = berlin("2026-12-14T00:00");
  clock.advance(end - 600_000 - clock.now());
  expect(await spendAndEvaluate(quota)).toBe("insufficient_quota");
  // It admits requests in the period that has begun by its clock. They count there and nowhere else.
  await commitOf([end + 60_000, 1_000]);
  await evaluator.evaluate();
  expect(await met()).toBe("insufficient_quota");
  expect(await credits()).toMatchObject({ used: `${quota}.000` });
  clock.advance(700_000);
  await evaluator.evaluate();
  expect(await met()).toBe("admitted");
  expect(await credits()).toMatchObject({ used: "1000.000" });
  expect(await periods()).toEqual({ "2026-11-14 10:30": quota, "2026-12-14 00:00": 1_000 });
});
