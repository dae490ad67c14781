import { beforeEach, describe, expect, test } from "vitest";
import { asId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createKeyCache } from "../../src/callers/key-cache.ts";
import { createAccounts } from "../../src/accounts/accounts.ts";
import { RequestError } from "../../src/rights/request-error.ts";
import { until as eventually } from "../db/database-fixture.ts";
import {
  accountId,
  accountPerTest,
  accounts,
  booked,
  clock,
  database,
  server,
  until,
  userId,
} from "./subscriptions-rig.ts";

await accountPerTest();

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof RequestError)) throw error;
  return error.kind;
}

async function charged(): Promise<string[]> {
  const lines = await accounts.subscriptions.invoice(accountId);
  return lines.map((line) => `${line.reason} ${line.package} ${line.days}/${line.periodDays} ${line.amountCents}`);
}

describe("a package", () => {
  test("can be tried, upgraded, downgraded, withdrawn and cancelled, and the invoice has each charge once", async () => {
    const { subscriptions } = accounts;
    expect(await subscriptions.change(accountId, { action: "trial" })).toEqual({
      package: "Starter",
      state: "trial",
      periodStart: "2026-11-14T09:30:00Z",
      periodEnd: "2026-12-13T23:00:00Z",
      pending: null,
    });
    until("2026-11-20T12:00");
    expect(await subscriptions.change(accountId, { action: "upgrade", package: "pro" })).toMatchObject({
      package: "Pro",
      state: "active",
      periodStart: "2026-11-20T11:00:00Z",
      periodEnd: "2026-12-19T23:00:00Z",
    });
    until("2026-12-01T12:00");
    await subscriptions.change(accountId, { action: "upgrade", package: "Business" });
    expect(await subscriptions.change(accountId, { action: "downgrade", package: "Starter" })).toMatchObject({
      package: "Business",
      pending: { change: "downgrade", package: "Starter", at: "2026-12-19T23:00:00Z" },
    });
    expect(await subscriptions.change(accountId, { action: "withdraw" })).toMatchObject({ pending: null });
    await subscriptions.change(accountId, { action: "downgrade", package: "Starter" });
    until("2026-12-20T00:00");
    expect(await booked()).toMatchObject({
      package: "Starter",
      periodEnd: "2027-01-19T23:00:00Z",
    });
    await subscriptions.change(accountId, { action: "cancel" });
    until("2027-01-20T00:00");
    expect(await booked()).toMatchObject({ package: null, state: "no package" });
    expect(await refusal(subscriptions.change(accountId, { action: "trial" }))).toBe("conflict");
    await subscriptions.chargeWhatIsDue();
    expect(await charged()).toEqual([
      "package Pro 30/30 3500",
      "upgrade Business 19/30 5953",
      "package Starter 31/31 700",
    ]);
  });

  test("must be named in actions that need a package, and in no others", async () => {
    const change = (wish: object) => refusal(accounts.subscriptions.change(accountId, wish as never));
    expect(await change({ action: "order" })).toBe("invalid");
    expect(await change({ action: "order", package: "Gold" })).toBe("invalid");
    expect(await change({ action: "trial", package: "Pro" })).toBe("invalid");
    expect(await refusal(booked(asId("00000000-0000-7000-8000-000000000000")))).toBe("not_found");
  });

  test("limits requests by the new package right after an upgrade", async () => {
    await using cache = await createKeyCache(
      database,
      clock,
      { keyChangesRead() {}, keyChangesUnreadable() {}, keyLookupFailed() {} },
      { hints: false },
    );
    await accounts.subscriptions.change(accountId, { action: "order", package: "Starter" });
    const { key } = await accounts.keys.create(userId, { name: "ci" });
    expect(await cache.find(key)).toMatchObject({ requestsPerMinute: 30 });
    clock.advance(1_000);
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Business" });
    await clock.advanceAsync(2_000);
    expect.soft(await until150(() => cache.find(key))).toBe(true);
  });
});

/**
 * Waits until the key cache has the new limit. The cache polls over real sockets, so advancing the virtual clock alone
 * is not enough.
 */
async function until150(find: () => unknown): Promise<boolean> {
  for (let n = 0; n < 200; n++) {
    const caller = (await find()) as { requestsPerMinute?: number };
    if (caller.requestsPerMinute === 150) return true;
    await clock.advanceAsync(2_000);
    await database.pool.query("select pg_sleep(0.01)");
  }
  return false;
}

describe("a quote", () => {
  const wish = { action: "upgrade", package: "Business" } as const;
  beforeEach(() => accounts.subscriptions.change(accountId, { action: "order", package: "Pro" }).then(() => {}));

  test("returns the cost of the change and the changes that it withdraws, and changes nothing", async () => {
    await accounts.subscriptions.change(accountId, { action: "downgrade", package: "Starter" });
    until("2026-11-25T14:03");
    expect(await accounts.subscriptions.preview(accountId, wish)).toMatchObject({
      dueCents: 5953,
      charges: [{ reason: "upgrade", days: 19, periodDays: 30, amountCents: 5953 }],
      thenCents: 12_900,
      withdraws: { change: "downgrade", package: "Starter" },
      after: { package: "Business", periodEnd: "2026-12-13T23:00:00Z", pending: null },
    });
    expect(await booked()).toMatchObject({ package: "Pro" });
    expect(await accounts.subscriptions.preview(accountId, { action: "cancel" })).toMatchObject({
      dueCents: 0,
      thenCents: null,
      withdraws: null,
    });
  });

  test("is charged exactly once, however often it is ordered", async () => {
    const { quoteId, charges } = await accounts.subscriptions.preview(accountId, wish);
    const order = () => accounts.subscriptions.change(accountId, wish, quoteId);
    const views = await Promise.all(Array.from({ length: 10 }, order));
    expect(new Set(views.map((view) => view.package))).toEqual(new Set(["Business"]));
    until("2026-11-16T00:00");
    await order();
    expect((await accounts.subscriptions.invoice(accountId)).slice(1)).toMatchObject([
      { amountCents: charges[0]!.amountCents },
    ]);
  });

  test("is refused after midnight, and nothing is charged", async () => {
    const { quoteId } = await accounts.subscriptions.preview(accountId, wish);
    until("2026-11-15T00:00");
    expect(await refusal(accounts.subscriptions.change(accountId, wish, quoteId))).toBe("price_changed");
    expect(await charged()).toEqual(["package Pro 30/30 3500"]);
    const { quoteId: renewed } = await accounts.subscriptions.preview(accountId, wish);
    expect(await accounts.subscriptions.change(accountId, wish, renewed)).toMatchObject({ package: "Business" });
  });

  test("without a price is ordered once, too, and the same change can be ordered again with a new quote", async () => {
    const cancel = { action: "cancel" } as const;
    const order = async () => {
      const { quoteId } = await accounts.subscriptions.preview(accountId, cancel);
      await accounts.subscriptions.change(accountId, cancel, quoteId);
      expect(await accounts.subscriptions.change(accountId, cancel, quoteId)).toMatchObject({
        pending: { change: "cancellation" },
      });
      return quoteId;
    };
    const first = await order();
    await accounts.subscriptions.change(accountId, { action: "withdraw" });
    expect(await accounts.subscriptions.change(accountId, cancel, first)).toMatchObject({ pending: null });
    expect(await order()).not.toBe(first);
    expect(await refusal(accounts.subscriptions.change(accountId, { action: "withdraw" }, first))).toBe(
      "price_changed",
    );
  });

  test("of a change at the end of the period is refused in the next period", async () => {
    const cancel = { action: "cancel" } as const;
    const { quoteId } = await accounts.subscriptions.preview(accountId, cancel);
    until("2026-12-14T00:00");
    expect(await refusal(accounts.subscriptions.change(accountId, cancel, quoteId))).toBe("price_changed");
  });

  test("is refused for another package or account, or after another change", async () => {
    const { quoteId } = await accounts.subscriptions.preview(accountId, wish);
    const other = { action: "upgrade", package: "Business Plus" } as const;
    expect(await refusal(accounts.subscriptions.change(accountId, other, quoteId))).toBe("price_changed");
    await accounts.subscriptions.change(accountId, { action: "cancel" });
    expect(await refusal(accounts.subscriptions.change(accountId, wish, quoteId))).toBe("price_changed");
    const stranger = await accounts.create({ name: "B", ownerEmail: "stranger@example.com", package: "Pro" });
    expect(await refusal(accounts.subscriptions.change(stranger.id, wish, quoteId))).toBe("price_changed");
  });
});

describe("periods that begin", () => {
  test("are charged once, even if several routers charge at once or periods were missed", async () => {
    await accounts.subscriptions.change(accountId, { action: "order", package: "Pro" });
    until("2027-02-14T00:00");
    const other = createAccounts({ database: await server.openAgain(database), clock, portalUrl: "" });
    const looks = [accounts, other, accounts, other].map(({ subscriptions }) => subscriptions.chargeWhatIsDue());
    await Promise.all(looks);
    expect(await charged()).toEqual([30, 31, 31, 28].map((days) => `package Pro ${days}/${days} 3500`));
    expect(await accounts.subscriptions.chargeWhatIsDue()).toBe(0);
  });

  test("and are charged cannot be cancelled by a router whose clock is behind", async () => {
    await accounts.subscriptions.change(accountId, { action: "order", package: "Pro" });
    until("2026-12-14T00:00");
    await accounts.subscriptions.chargeWhatIsDue();
    const late = createAccounts({ database, clock: new VirtualClock(clock.now() - 2_000), portalUrl: "" });
    expect(await late.subscriptions.change(accountId, { action: "cancel" })).toMatchObject({
      package: "Pro",
      pending: { change: "cancellation", at: "2027-01-13T23:00:00Z" },
    });
    expect(await charged()).toEqual(["package Pro 30/30 3500", "package Pro 31/31 3500"]);
  });

  test("are charged before the package changes", async () => {
    await accounts.subscriptions.change(accountId, { action: "order", package: "Pro" });
    until("2026-12-20T00:00");
    await accounts.subscriptions.change(accountId, { action: "cancel" });
    expect(await charged()).toEqual(["package Pro 30/30 3500", "package Pro 31/31 3500"]);
  });
});

test("a change by an Owner that waits for the account's row holds no lock on user rows", async () => {
  const evaluation = await database.pool.connect();
  await evaluation.query("begin");
  await evaluation.query("select from accounts where id = $1 for no key update", [accountId]);
  const asOwner = accounts.as({ actor: userId, source: "::1" });
  const change = asOwner.subscriptions.change(accountId, { action: "trial" });
  await eventually("a change that waits", 30_000, async () => {
    const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    return (await database.pool.query(waiting)).rowCount! > 0;
  });
  await evaluation.query("select from users where id = $1 for update nowait", [userId]);
  await evaluation.query("commit");
  evaluation.release();
  expect((await change).state).toBe("trial");
});

test("only one of twenty concurrent orders succeeds", async () => {
  const orders = Array.from({ length: 20 }, () =>
    accounts.subscriptions.change(accountId, { action: "order", package: "Pro" }),
  );
  const results = await Promise.allSettled(orders);
  const refusals = results.filter((result) => result.status === "rejected" && result.reason instanceof RequestError);
  expect(refusals.length).toBe(19);
  expect(await charged()).toEqual(["package Pro 30/30 3500"]);
});

test("a clock that is set back undoes no change", async () => {
  await accounts.subscriptions.change(accountId, { action: "trial" });
  const early = createAccounts({ database, clock: new VirtualClock(clock.now() - 60_000), portalUrl: "" });
  expect(await refusal(early.subscriptions.change(accountId, { action: "trial" }))).toBe("conflict");
  expect(await early.subscriptions.change(accountId, { action: "upgrade", package: "Pro" })).toMatchObject({
    package: "Pro",
  });
  expect(await charged()).toEqual(["package Pro 30/30 3500"]);
});
