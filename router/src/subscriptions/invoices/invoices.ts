/** Reads issued invoices, and the net lines that have no invoice yet. */
import { sql, type Selectable } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { InvoiceSettings } from "../../config/invoice-settings.ts";
import { instantText, instantValue } from "../../db/database.ts";
import type { Schema } from "../../db/schema.ts";
import type { ActingContext } from "../../rights/accounts-context.ts";
import { found } from "../../rights/request-error.ts";
import { germanDay, startOfGermanDay } from "../billing-period.ts";
import { firstEndMs } from "./issue-invoices.ts";

/** Days of issue, both included. */
interface IssueDays {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The reason why lines have no invoice. */
type Waiting = "period" | "operator" | "address" | "earlier";

/** Invoices on a page of `listIssued`. */
const pageSize = 500;

export function createInvoices({ database, clock }: ActingContext, settings: InvoiceSettings | undefined) {
  const { kysely } = database;

  const issued = () => kysely.selectFrom("invoices").selectAll();

  /** Adds the lines. */
  async function whole(rows: readonly Selectable<Schema["invoices"]>[]) {
    if (rows.length === 0) return [];
    const numbers = rows.map(({ number }) => number);
    const lines = kysely.selectFrom("invoiceLines").selectAll().where("invoiceNumber", "in", numbers);
    const byNumber = Map.groupBy(await lines.orderBy("periodStart").execute(), (line) => line.invoiceNumber);
    return rows.map((row) => viewInvoice(row, byNumber.get(row.number) ?? []));
  }

  return {
    /** The first day on which a period may end. null if no invoices are issued. */
    since: settings?.since ?? null,

    /** Lists an account's invoices, newest first. */
    async list(accountId: AccountId, page: { readonly limit: number; readonly offset: number }) {
      const own = issued().where("accountId", "=", accountId);
      const rows = own.orderBy("year", "desc").orderBy("position", "desc").limit(page.limit).offset(page.offset);
      const { count } = await kysely
        .selectFrom("invoices")
        .select(({ fn }) => fn.countAll<bigint>().as("count"))
        .where("accountId", "=", accountId)
        .executeTakeFirstOrThrow();
      return { items: await whole(await rows.execute()), total: Number(count), open: await open(accountId) };
    },

    /** `accountId`: the only account whose invoice is shown; undefined shows any. */
    async show(number: string, accountId?: AccountId) {
      const one = issued()
        .where("number", "=", number)
        .$if(accountId !== undefined, (own) => own.where("accountId", "=", accountId!));
      return (await whole([found(await one.executeTakeFirst(), "invoice", number)]))[0]!;
    },

    /** Lists invoices of all accounts or of one, in the order of their numbers. `after`: the last number of the page before. */
    async listIssued(
      filter: IssueDays & { readonly accountId?: AccountId | undefined; readonly after?: string | undefined },
    ) {
      const { accountId, from, to, after } = filter;
      const last = after === undefined ? undefined : await issued().where("number", "=", after).executeTakeFirst();
      if (after !== undefined) found(last, "invoice", after);
      const rows = await issued()
        .$if(accountId !== undefined, (all) => all.where("accountId", "=", accountId!))
        .$if(from !== undefined, (all) => all.where("issuedAt", ">=", instantValue(startOfGermanDay(from!))))
        .$if(to !== undefined, (all) => all.where("issuedAt", "<", instantValue(startOfGermanDay(to!, 1))))
        .$if(last !== undefined, (all) =>
          all.where(sql<boolean>`(year, position) > (${last!.year}, ${last!.position})`),
        )
        .orderBy("year")
        .orderBy("position")
        .limit(pageSize)
        .execute();
      return { items: await whole(rows), after: rows.length < pageSize ? null : rows.at(-1)!.number };
    },

    /** Lists ended periods of all accounts that wait for something other than their end. */
    waiting: async () => (await open()).filter(({ waitsFor }) => waitsFor !== "period" && waitsFor !== "earlier"),
  };

  /** Sums net lines without an invoice by period, newest first. */
  async function open(accountId?: AccountId) {
    const nowMs = clock.now();
    const { rows } = await sql<Open>`
      select l.account_id, a.name as account_name, l.period_end, min(l.period_start) as period_start,
        sum(l.amount_cents)::integer as net_cents, b.account_id is not null as has_address
      from invoice_lines l join accounts a on a.id = l.account_id left join billing_details b on b.account_id = a.id
      where l.invoice_number is null and a.deleted_at is null
        and ${accountId === undefined ? sql`l.period_end <= ${instantText(nowMs)}` : sql`l.account_id = ${accountId}`}
      group by l.account_id, a.name, l.period_end, b.account_id order by l.period_end desc, l.account_id`.execute(
      kysely,
    );
    return rows.map(({ hasAddress, periodStart, periodEnd, ...period }) => ({
      ...period,
      ...spanOf(periodStart, periodEnd),
      waitsFor: waitsFor(periodEnd.epochMilliseconds, hasAddress),
    }));
  }

  function waitsFor(endMs: number, hasAddress: boolean): Waiting {
    if (!settings) return "operator";
    if (endMs < firstEndMs(settings)) return "earlier";
    if (!hasAddress) return "address";
    return "period";
  }
}

interface Open {
  readonly accountId: AccountId;
  readonly accountName: string;
  readonly periodStart: Temporal.Instant;
  readonly periodEnd: Temporal.Instant;
  readonly netCents: number;
  readonly hasAddress: boolean;
}

function viewInvoice(row: Selectable<Schema["invoices"]>, lines: readonly Selectable<Schema["invoiceLines"]>[]) {
  const { number, accountId, periodStart, periodEnd, issuedAt, seller, buyer, note, netCents, vatCents } = row;
  return {
    number,
    accountId,
    issuedOn: germanDay(issuedAt.epochMilliseconds),
    ...spanOf(periodStart, periodEnd),
    seller,
    buyer,
    lines: lines.map(({ reason, package: name, days, periodDays, amountCents, ...line }) => ({
      reason,
      package: name,
      ...spanOf(line.periodStart, line.periodEnd),
      days,
      periodDays,
      netCents: amountCents,
    })),
    currency: "EUR" as const,
    netCents,
    vatPercent: row.vatHundredths / 100,
    vatCents,
    grossCents: netCents + vatCents,
    note,
  };
}

/** Returns the first and the last German day. */
function spanOf(start: Temporal.Instant, end: Temporal.Instant) {
  return { firstDay: germanDay(start.epochMilliseconds), lastDay: germanDay(end.epochMilliseconds - 1) };
}
