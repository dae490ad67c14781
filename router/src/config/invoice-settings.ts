/** The section `invoices` of router.yaml: who issues invoices, and with which VAT. */
import { Type, type Static } from "typebox";
import type { Finding } from "@weiche/shared/files/config-file.ts";

const closed = { additionalProperties: false } as const;

function line(description: string) {
  return Type.String({ pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]+$", maxLength: 200, description });
}

function optionalLine(description: string) {
  return Type.Optional(Type.String({ ...line(description), absent: "not shown" }));
}

const countryCode = Type.String({ pattern: "^[A-Z]{2}$" });

const note = "printed below the sums";

export const invoicesSchema = Type.Object(
  {
    since: Type.String({
      pattern: "^\\d{4}-\\d{2}-\\d{2}$",
      description:
        "billing periods whose last day is this day or later get an invoice, such as `2027-01-31`. Earlier periods get none, because you have invoiced them in another way",
    }),
    numberPrefix: Type.String({
      pattern: "^[A-Za-z0-9-]{0,12}$",
      default: "",
      description: "what numbers begin with: `R-` makes `R-2027-00001`",
    }),
    seller: Type.Object(
      {
        name: line("your full legal name"),
        address: Type.Array(line("a line"), {
          minItems: 1,
          maxItems: 6,
          description: "your address, a line each",
        }),
        vatId: optionalLine("your VAT id. An invoice needs this or `taxNumber`"),
        taxNumber: optionalLine("your tax number"),
        bank: optionalLine("your bank account, such as `IBAN DE02 1203 0000 0000 2020 51, BIC BYLADEM1001`"),
        email: optionalLine("your address for questions about invoices"),
      },
      { ...closed, description: "you, as invoices name you. Issued invoices keep what was valid at their issue" },
    ),
    vat: Type.Object(
      {
        percent: Type.Number({
          minimum: 0,
          maximum: 100,
          description: "the rate, such as 19, with at most two decimals",
        }),
        note: Type.Optional(
          Type.String({
            maxLength: 500,
            description: `a sentence that is ${note}. A rate of 0 needs it: the reason, such as \`Kein Ausweis von Umsatzsteuer nach § 19 UStG\``,
            absent: "no sentence",
          }),
        ),
        reverseCharge: Type.Optional(
          Type.Object(
            {
              countries: Type.Array(countryCode, {
                minItems: 1,
                uniqueItems: true,
                description: "country codes, such as `[AT, FR, NL]`",
              }),
              note: Type.String({
                minLength: 1,
                maxLength: 500,
                description: `the sentence that is ${note} instead, such as \`Steuerschuldnerschaft des Leistungsempfängers (reverse charge)\``,
              }),
            },
            {
              ...closed,
              description: "the rate 0 for accounts with a VAT id in these countries",
              absent: "the same rate for every account",
            },
          ),
        ),
      },
      { ...closed, description: "the VAT line of invoices" },
    ),
  },
  {
    ...closed,
    description:
      "issues an invoice when a billing period has ended, if the account has a billing address ([how](runbook.md#invoices))",
    absent: "no invoices: accounts see net lines without a number",
  },
);

type RawInvoices = Static<typeof invoicesSchema>;

export type InvoiceSettings = ReturnType<typeof toInvoiceSettings>;
export type Seller = InvoiceSettings["seller"];

export function toInvoiceSettings({ since, numberPrefix, seller, vat }: RawInvoices) {
  const { name, address, vatId = null, taxNumber = null, bank = null, email = null } = seller;
  return {
    since,
    numberPrefix,
    seller: { name, address, vatId, taxNumber, bank, email },
    vat: {
      /** Hundredths of a percent, so that sums are exact. */
      hundredths: Math.round(vat.percent * 100),
      note: vat.note ?? null,
      reverseCharge: vat.reverseCharge ?? null,
    },
  };
}

/** Finds mistakes in the section that its schema cannot express. */
export function* invoiceMistakes({ since, seller, vat }: RawInvoices): Iterable<Finding> {
  if (!isDay(since)) yield [["invoices", "since"], `invoices.since ${since} is no day: write it like 2027-01-31`];
  if (seller.vatId === undefined && seller.taxNumber === undefined)
    yield [["invoices", "seller"], "invoices.seller needs vatId or taxNumber: an invoice without either is not valid"];
  if (Math.abs(vat.percent * 100 - Math.round(vat.percent * 100)) > 1e-6)
    yield [["invoices", "vat", "percent"], `invoices.vat.percent ${vat.percent} has more than two decimals`];
  if (vat.percent === 0 && !vat.note?.trim())
    yield [["invoices", "vat"], "invoices.vat.note is missing: a rate of 0 needs the reason for it"];
}

function isDay(text: string): boolean {
  try {
    return Temporal.PlainDate.from(text, { overflow: "reject" }).toString() === text;
  } catch {
    return false;
  }
}
