/** Sums, VAT and numbers of invoices. Pure. All amounts are whole cents. */
import type { InvoiceSettings } from "../../config/invoice-settings.ts";
import type { BillingDetails } from "../../db/schema.ts";
import { germanDay } from "../billing-period.ts";

/**
 * The only place where an invoice is rounded: VAT is computed once, on the sum of all lines, and half a cent is rounded
 * up. `hundredths`: the rate in hundredths of a percent.
 */
export function vatCentsOf(netCents: number, hundredths: number): number {
  return Math.floor((2 * netCents * hundredths + wholeRate) / (2 * wholeRate));
}

/** 100 % in hundredths of a percent. */
const wholeRate = 10_000;

/** Returns the rate for an account, and the sentence about it. */
export function vatFor({ hundredths, note, reverseCharge }: InvoiceSettings["vat"], buyer: BillingDetails) {
  if (reverseCharge && buyer.vatId !== null && reverseCharge.countries.includes(buyer.country))
    return { hundredths: 0, note: reverseCharge.note };
  return { hundredths, note };
}

/** The newest number. */
interface LastNumber {
  readonly year: number;
  readonly position: number;
  readonly issuedMs: number;
}

/**
 * Returns the next number. Numbers count from 1 in each German year. A router whose clock is behind issues at the time of
 * the last invoice, so that a higher number never has an earlier day.
 */
export function numberAfter(last: LastNumber, nowMs: number): LastNumber {
  const issuedMs = Math.max(nowMs, last.issuedMs);
  const year = Number(germanDay(issuedMs).slice(0, 4));
  return { year, position: year === last.year ? last.position + 1 : 1, issuedMs };
}

export function numberText(prefix: string, { year, position }: LastNumber): string {
  return `${prefix}${year}-${String(position).padStart(5, "0")}`;
}
