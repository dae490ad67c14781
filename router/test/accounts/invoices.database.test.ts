import { beforeEach, describe, expect, test } from "vitest";
import type { PoolClient } from "pg";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createAccounts, type Accounts } from "../../src/accounts/accounts.ts";
import type { Database } from "../../src/db/database.ts";
import { createSubscriptions } from "../../src/subscriptions/subscriptions.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { acmeAddress, invoiceSettings } from "./invoices-rig.ts";
import { accountId, accountPerTest, berlin, clock, database, server, until, userId } from "./subscriptions-rig.ts";

await accountPerTest();

let accounts: Accounts;

function routerWith(invoices: typeof invoiceSettings | undefined): Accounts {
  return createAccounts({ database, clock, portalUrl: "https://portal.example", invoices });
}

beforeEach(async () => {
  // Earlier tests issue numbers, too.
  await database.pool.query("truncate invoices, invoice_lines, billing_details");
  await database.pool.query("update invoice_numbers set year = 0, position = 0, issued_at = 'epoch'");
  accounts = routerWith(invoiceSettings);
});

async function order(id: AccountId, packageName: string): Promise<void> {
  await accounts.subscriptions.change(id, { action: "order", package: packageName });
}

const list = (id = accountId) => accounts.invoices.list(id, { limit: 50, offset: 0 });
const issue = () => accounts.subscriptions.issueInvoices();

describe("an invoice", () => {
  test("has all lines of an ended period, their sum, VAT on the sum, and last days in German time", async () => {
    await accounts.billing.set(accountId, acmeAddress);
    await order(accountId, "Pro");
    until("2026-12-01T12:00");
    await accounts.subscriptions.change(accountId, { action: "upgrade", package: "Business" });
    until("2026-12-13T23:59");
    expect(await issue()).toBe(0);
    expect(await list()).toMatchObject({
      items: [],
      open: [{ firstDay: "2026-11-14", lastDay: "2026-12-13", netCents: 7_573, waitsFor: "period" }],
    });
    until("2026-12-14T00:00");
    expect(await issue()).toBe(1);
    const { items, open } = await list();
    expect(items).toEqual([
      {
        number: "R-2026-00001",
        accountId,
        issuedOn: "2026-12-14",
        firstDay: "2026-11-14",
        lastDay: "2026-12-13",
        seller: invoiceSettings.seller,
        buyer: acmeAddress,
        lines: [
          {
            reason: "package",
            package: "Pro",
            firstDay: "2026-11-14",
            lastDay: "2026-12-13",
            days: 30,
            periodDays: 30,
            netCents: 3_500,
          },
          {
            reason: "upgrade",
            package: "Business",
            firstDay: "2026-12-01",
            lastDay: "2026-12-13",
            days: 13,
            periodDays: 30,
            netCents: 4_073,
          },
        ],
        currency: "EUR",
        netCents: 7_573,
        vatPercent: 19,
        vatCents: 1_439,
        grossCents: 9_012,
        note: null,
      },
    ]);
    // The new period has begun and waits for its end.
    expect(open).toMatchObject([{ firstDay: "2026-12-14", netCents: 12_900, waitsFor: "period" }]);
    expect(await issue()).toBe(0);
    expect(await accounts.invoices.show("R-2026-00001", accountId)).toEqual(items[0]);
  });

  test("keeps the addresses, the rate and the sums of its issue", async () => {
    await accounts.billing.set(accountId, acmeAddress);
    await order(accountId, "Pro");
    until("2026-12-14T00:00");
    await issue();
    const before = (await list()).items;
    await accounts.billing.set(accountId, { ...acmeAddress, name: "Other GmbH", country: "AT", vatId: "ATU12345678" });
    accounts = routerWith({ ...invoiceSettings, seller: { ...invoiceSettings.seller, name: "New Owner" } });
    until("2027-01-14T00:00");
    await issue();
    const after = (await list()).items;
    expect(after.slice(1)).toEqual(before);
    expect(after[0]).toMatchObject({
      number: "R-2027-00001",
      seller: { name: "New Owner" },
      buyer: { name: "Other GmbH" },
      vatPercent: 0,
      vatCents: 0,
      grossCents: 3_500,
      note: "Steuerschuldnerschaft des Leistungsempfängers",
    });
    const changes = [
      "update invoices set net_cents = 1",
      "delete from invoices",
      "update invoice_lines set amount_cents = 1 where invoice_number is not null",
      "delete from invoice_lines",
    ];
    for (const change of changes) await expect(database.pool.query(change)).rejects.toThrow("an invoice never changes");
    expect((await list()).items).toEqual(after);
  });

  test("waits for the operator's settings, for the account's address and for its first day", async () => {
    accounts = routerWith(undefined);
    await order(accountId, "Pro");
    until("2026-12-14T00:00");
    const waiting = async () => {
      const all = await accounts.invoices.waiting();
      return all.filter((one) => one.accountId === accountId).map(({ waitsFor }) => waitsFor);
    };
    expect([await issue(), await waiting()]).toEqual([0, ["operator"]]);
    accounts = routerWith(invoiceSettings);
    expect([await issue(), await waiting()]).toEqual([0, ["address"]]);
    await accounts.billing.set(accountId, acmeAddress);
    accounts = routerWith({ ...invoiceSettings, since: "2026-12-14" });
    expect([await issue(), await waiting()]).toEqual([0, []]);
    expect((await list()).open.map(({ waitsFor }) => waitsFor)).toContain("earlier");
    until("2027-01-14T00:00");
    await accounts.subscriptions.chargeWhatIsDue();
    expect([await issue(), (await list()).items.map(({ lastDay }) => lastDay)]).toEqual([1, ["2027-01-13"]]);
    accounts = routerWith({ ...invoiceSettings, since: "2026-12-13" });
    expect([await issue(), await waiting()]).toEqual([1, []]);
  });

  test("of a deleted account is issued at once and keeps its name and address", async () => {
    await accounts.billing.set(accountId, acmeAddress);
    await order(accountId, "Pro");
    until("2026-11-20T12:00");
    const deleted = await accounts.life.delete(accountId);
    expect(deleted.stays).toMatchObject({ invoices: 0, withoutInvoiceCents: 3_500 });
    expect((await list()).items).toMatchObject([
      { number: "R-2026-00001", issuedOn: "2026-11-20", buyer: acmeAddress, netCents: 3_500 },
    ]);
    expect(await accounts.billing.show(accountId)).toBeNull();
    until("2027-03-01T00:00");
    expect(await issue()).toBe(0);
  });

  test("has no later line, although the clock of another router still is in its period", async () => {
    await accounts.billing.set(accountId, acmeAddress);
    await order(accountId, "Pro");
    await accounts.subscriptions.change(accountId, { action: "cancel" });
    const behind = new VirtualClock(berlin("2026-12-13T23:00"));
    until("2026-12-14T00:00");
    await issue();
    const slow = createAccounts({ database, clock: behind, portalUrl: "", invoices: invoiceSettings });
    await expect(slow.subscriptions.change(accountId, { action: "upgrade", package: "Business" })).rejects.toThrow(
      "the account has no package",
    );
    expect(await list()).toMatchObject({ items: [{ netCents: 3_500 }], open: [] });
  });

  test("of another account is not shown", async () => {
    await accounts.billing.set(accountId, acmeAddress);
    await order(accountId, "Pro");
    until("2026-12-14T00:00");
    await issue();
    const other = await accounts.create({ name: "Other", ownerEmail: `other${accountId}@example.com` });
    await expect(accounts.invoices.show("R-2026-00001", other.id)).rejects.toThrow("there is no invoice");
  });
});

describe("a billing address", () => {
  test("is set by Owners only, and its wrong fields are named", async () => {
    const owner = accounts.as({ actor: userId, source: "::1" });
    await owner.billing.set(accountId, { ...acmeAddress, country: "de", vatId: " de 98 765 4321 " });
    expect(await accounts.billing.show(accountId)).toEqual(acmeAddress);
    const wrong = owner.billing.set(accountId, { ...acmeAddress, country: "QQ", vatId: "U1" });
    await expect(wrong).rejects.toMatchObject({ details: [{ param: "country" }, { param: "vatId" }] });
    const { id } = await accounts.users.create({ accountId, email: `admin${accountId}@example.com`, role: "admin" });
    const admin = accounts.as({ actor: id, source: "::1" });
    await expect(admin.billing.set(accountId, acmeAddress)).rejects.toMatchObject({ kind: "forbidden" });
  });
});

describe("numbers", () => {
  /** Accounts with a period that ends on 13 December. */
  async function newAccounts(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const { id } = await accounts.create({ name: "A", ownerEmail: `n${++made}@example.com` });
      await accounts.billing.set(id, acmeAddress);
      await order(id, "Starter");
    }
  }
  let made = 0;

  async function issuedNumbers(): Promise<{ positions: number[]; accounts: number; lines: number; sums: boolean }> {
    const { rows } = await database.pool.query<{
      position: number;
      account_id: string;
      net: number;
      sum: number;
      lines: number;
    }>(
      `select i.position, i.account_id, i.net_cents as net, sum(l.amount_cents)::integer as sum, count(l.*)::integer as lines
       from invoices i left join invoice_lines l on l.invoice_number = i.number group by i.number order by i.position`,
    );
    return {
      positions: rows.map(({ position }) => position),
      accounts: new Set(rows.map(({ account_id: id }) => id)).size,
      lines: rows.reduce((sum, { lines }) => sum + lines, 0),
      sums: rows.every(({ net, sum }) => net === sum),
    };
  }

  test("have no gap and no invoice is issued twice if three routers issue at once", async () => {
    await newAccounts(20);
    until("2026-12-14T00:00");
    const others = await Promise.all([server.openAgain(database), server.openAgain(database)]);
    const routers = [database, ...others].map((each) =>
      createSubscriptions({ database: each, clock }, invoiceSettings),
    );
    const counts = await Promise.all(routers.map((router) => router.issueInvoices()));
    expect(counts.reduce((sum, count) => sum + count)).toBe(20);
    const positions = Array.from({ length: 20 }, (_, index) => index + 1);
    expect(await issuedNumbers()).toEqual({ positions, accounts: 20, lines: 20, sums: true });
  });

  test("have no gap if accounts are deleted at the same time on several routers", async () => {
    await newAccounts(12);
    const databases = [database, await server.openAgain(database)];
    const { rows } = await database.pool.query<{ id: AccountId }>("select account_id as id from billing_details");
    const deletions = rows.map(({ id }, index) => {
      const router = { database: databases[index % 2]!, clock, portalUrl: "", invoices: invoiceSettings };
      return createAccounts(router).life.delete(id);
    });
    await Promise.all(deletions);
    const positions = Array.from({ length: 12 }, (_, index) => index + 1);
    expect(await issuedNumbers()).toEqual({ positions, accounts: 12, lines: 12, sums: true });
  });

  test("have no gap and no invoice is missing wherever a router loses its database", { timeout: 120_000 }, async () => {
    let crashes = 0;
    for (const when of ["before", "after"] as const)
      for (let statement = 1; ; statement++) {
        clock.advance(berlin("2026-11-14T10:30") - clock.now());
        await newAccounts(1);
        until("2026-12-14T00:00");
        await using dying = await server.openAgain(database);
        if (!(await diesAt(dying, statement, when))) break;
        crashes++;
        await issue();
      }
    expect(crashes).toBeGreaterThan(20);
    const positions = Array.from({ length: crashes + 2 }, (_, index) => index + 1);
    expect(await issuedNumbers()).toEqual({ positions, accounts: crashes + 2, lines: crashes + 2, sums: true });
  });

  /** Issues with a database connection that the server ends at a statement. Returns whether it came to that. */
  async function diesAt(dying: Database, statement: number, when: "before" | "after"): Promise<boolean> {
    let left = statement;
    dying.pool.on("connect", (client: PoolClient) => {
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
      const kill = () =>
        database.pool.query("select pg_terminate_backend($1)", [
          (client as unknown as { processID: number }).processID,
        ]);
      const counted = async (...args: unknown[]) => {
        if (typeof args.at(-1) === "function") return query(...args); // reads which accounts are due
        left--;
        if (left === 0 && when === "before") await kill();
        const result = await query(...args);
        if (left !== 0 || when === "before") return result;
        await kill();
        throw new Error("the connection was lost after the statement");
      };
      client.query = counted as unknown as typeof client.query;
    });
    const issuing = createSubscriptions({ database: dying, clock }, invoiceSettings).issueInvoices();
    return issuing.then(
      () => false,
      () => true,
    );
  }

  test("are issued until no account is left although one of them fails", async () => {
    await newAccounts(3);
    const { rows } = await database.pool.query<{ id: string }>("select account_id as id from billing_details limit 1");
    await database.pool.query(`alter table invoices add constraint broken check (account_id <> '${rows[0]!.id}')`);
    until("2026-12-14T00:00");
    await expect(issue()).rejects.toThrow("broken");
    expect((await issuedNumbers()).positions).toEqual([1, 2]);
    await database.pool.query("alter table invoices drop constraint broken");
    expect(await issue()).toBe(1);
    expect((await issuedNumbers()).positions).toEqual([1, 2, 3]);
    expect(
      await accounts.invoices.listIssued({ from: "2026-12-14", to: "2026-12-14", accountId: asId(rows[0]!.id) }),
    ).toMatchObject({
      items: [{ number: "R-2026-00003" }],
      after: null,
    });
  });
});
