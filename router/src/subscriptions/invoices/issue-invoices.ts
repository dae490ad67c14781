/**
 * Issues invoices. An invoice is closed by the end of its billing period, or by the deletion of its account. Any router
 * may issue at any time: the locked account and the unique period make it once, and the locked counter leaves no gap.
 */
import { sql, type Transaction } from "kysely";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import type { InvoiceSettings } from "../../config/invoice-settings.ts";
import { inTransaction, instantText, instantValue } from "../../db/database.ts";
import type { BillingDetails, Schema } from "../../db/schema.ts";
import type { ActingContext } from "../../rights/accounts-context.ts";
import { startOfGermanDay } from "../billing-period.ts";
import { writeCharges } from "../subscription-change.ts";
import { readSubscription } from "../subscription.ts";
import { numberAfter, numberText, vatCentsOf, vatFor } from "./invoice-rules.ts";

/**
 * Issues the invoices of all periods that have ended. Returns their number. If an account fails, the others still get
 * theirs before the first error is thrown. Does nothing without settings.
 */
export async function issueDueInvoices(
  { database, clock }: Pick<ActingContext, "database" | "clock">,
  settings: InvoiceSettings | undefined,
): Promise<number> {
  if (!settings) return 0;
  const { rows } = await database.pool.query<{ id: AccountId }>(
    `select distinct l.account_id as id from invoice_lines l
       join billing_details b on b.account_id = l.account_id
     where l.invoice_number is null and l.period_end <= $1 and l.period_end >= $2`,
    [instantText(clock.now()), instantText(firstEndMs(settings))],
  );
  const failures: unknown[] = [];
  let issued = 0;
  for (const { id } of rows)
    await inTransaction(database, async (transaction) => {
      const { terms, nowMs, book } = await readSubscription(transaction, id, clock.now(), "locked");
      // Completes the periods' lines. A router whose clock is behind cannot add to an ended period any more.
      await writeCharges(transaction, id, terms, nowMs, book);
      return issueInvoices(transaction, id, settings, nowMs);
    }).then(
      (count) => (issued += count),
      (error: unknown) => failures.push(error), // the other accounts must still get theirs
    );
  if (failures.length > 0) throw failures[0];
  return issued;
}

/**
 * Issues an account's invoices of periods that end until `untilMs`, which defaults to now. Call it with the account's row
 * locked and after its charges. Does nothing without a billing address.
 */
export async function issueInvoices(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  settings: InvoiceSettings,
  nowMs: number,
  untilMs = nowMs,
): Promise<number> {
  const details = transaction.selectFrom("billingDetails").selectAll().where("accountId", "=", accountId);
  const found = await details.executeTakeFirst();
  if (!found) return 0;
  const { accountId: _account, ...buyer } = found;
  const open = await transaction
    .selectFrom("invoiceLines")
    .select(["periodEnd", sql<number>`sum(amount_cents)::integer`.as("netCents")])
    .select(sql<Temporal.Instant>`min(period_start)`.as("periodStart"))
    .where("accountId", "=", accountId)
    .where("invoiceNumber", "is", null)
    .where("periodEnd", ">=", instantValue(firstEndMs(settings)))
    .$if(untilMs !== Infinity, (lines) => lines.where("periodEnd", "<=", instantValue(untilMs)))
    .groupBy("periodEnd") // a period's upgrades end with it
    .orderBy("periodEnd")
    .execute();
  for (const period of open) await issue(transaction, asId(accountId), { ...period, buyer }, settings, nowMs);
  return open.length;
}

interface Period {
  readonly periodStart: Temporal.Instant;
  readonly periodEnd: Temporal.Instant;
  readonly netCents: number;
  readonly buyer: BillingDetails;
}

async function issue(
  transaction: Transaction<Schema>,
  accountId: AccountId,
  { periodStart, periodEnd, netCents, buyer }: Period,
  { numberPrefix, seller, vat }: InvoiceSettings,
  nowMs: number,
): Promise<void> {
  const last = await transaction.selectFrom("invoiceNumbers").selectAll().forUpdate().executeTakeFirstOrThrow();
  const next = numberAfter({ ...last, issuedMs: last.issuedAt.epochMilliseconds }, nowMs);
  const number = numberText(numberPrefix, next);
  const { year, position } = next;
  const issuedAt = instantText(next.issuedMs);
  const { hundredths, note } = vatFor(vat, buyer);
  await transaction
    .insertInto("invoices")
    .values({
      ...{ number, year, position, accountId, issuedAt, netCents, note },
      periodStart: periodStart.toString(),
      periodEnd: periodEnd.toString(),
      seller: JSON.stringify(seller),
      buyer: JSON.stringify(buyer),
      vatHundredths: hundredths,
      vatCents: vatCentsOf(netCents, hundredths),
    })
    .execute();
  await transaction
    .updateTable("invoiceLines")
    .set({ invoiceNumber: number })
    .where("accountId", "=", accountId)
    .where("periodEnd", "=", instantValue(periodEnd.epochMilliseconds))
    .where("invoiceNumber", "is", null)
    .execute();
  await transaction.updateTable("invoiceNumbers").set({ year, position, issuedAt }).execute();
}

/** Returns the earliest exclusive end of a period that gets an invoice. */
export function firstEndMs({ since }: InvoiceSettings): number {
  return startOfGermanDay(since, 1);
}
