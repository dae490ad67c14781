/** Routes of invoices and of the address on them. Amounts are in cents, days are German days. */
import { Type } from "typebox";
import { accountName, cents, count, day, id, object, orNull, packageName, type RouteTable } from "./route.ts";

const number = Type.String({ pattern: "^[A-Za-z0-9-]{1,60}$" });
const typedLine = (maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]+$" });
const emptyable = (maxLength: number, description: string) =>
  orNull(Type.String({ maxLength, pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$", description }));

const details = {
  name: typedLine(200),
  street: typedLine(200),
  postalCode: typedLine(20),
  city: typedLine(100),
  country: Type.String({ minLength: 2, maxLength: 2, description: "A code, such as DE." }),
  vatId: emptyable(30, "Begins with the country's code."),
  email: orNull(
    Type.String({ maxLength: 254, pattern: "^([^@\\s]+@[^@\\s]+)?$", description: "For questions about invoices." }),
  ),
};
const billing = object(
  {
    ...details,
    name: Type.String(),
    street: Type.String(),
    postalCode: Type.String(),
    city: Type.String(),
    country: Type.String(),
    vatId: orNull(Type.String()),
    email: orNull(Type.String()),
  },
  { description: "The receiver." },
);

const invoice = object({
  number,
  accountId: id,
  issuedOn: day,
  firstDay: day,
  lastDay: day,
  seller: object({
    name: Type.String(),
    address: Type.Array(Type.String()),
    vatId: orNull(Type.String()),
    taxNumber: orNull(Type.String()),
    bank: orNull(Type.String()),
    email: orNull(Type.String()),
  }),
  buyer: billing,
  lines: Type.Array(
    object({
      reason: Type.Enum(["package", "upgrade"]),
      package: packageName,
      firstDay: day,
      lastDay: day,
      days: count,
      periodDays: count,
      netCents: cents,
    }),
  ),
  currency: Type.Literal("EUR"),
  netCents: cents,
  vatPercent: Type.Number({ description: "At most two decimals." }),
  vatCents: cents,
  grossCents: cents,
  note: orNull(Type.String()),
});

const open = object({
  accountId: id,
  accountName: Type.String(),
  firstDay: day,
  lastDay: day,
  netCents: cents,
  waitsFor: Type.Enum(["period", "address", "operator", "earlier"], {
    description:
      "`period`: the end of the billing period. `address`: the account's billing address. `operator`: `invoices` in router.yaml. `earlier`: nothing, because the period ended before `invoices.since`.",
  }),
});

export const invoicesContract = {
  listInvoices: {
    summary: "List the account's invoices, newest first, and its net amounts without an invoice",
    may: ["owner"],
    query: object({ page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })) }),
    reply: object({
      items: Type.Array(invoice),
      total: count,
      page: count,
      pageSize: count,
      open: Type.Array(open),
      hasAddress: Type.Boolean(),
    }),
  },
  showInvoice: {
    summary: "Show an invoice by its number",
    may: ["owner", "operator"],
    params: object({ id: number }),
    reply: invoice,
  },
  showBilling: {
    summary: "Show the name and address on the account's next invoices. null if there are none",
    may: ["owner", "operator"],
    of: "account",
    reply: object({ billing: orNull(billing) }),
  },
  setBilling: {
    summary: "Set the name and address on the account's next invoices. Issued invoices do not change",
    may: ["owner", "operator"],
    of: "account",
    body: object(details),
    reply: object({ billing: orNull(billing) }),
  },
  listIssuedInvoices: {
    summary: "List invoices of all accounts or of one in the order of their numbers, 500 at once",
    may: ["operator"],
    query: object({
      account: Type.Optional(accountName),
      from: Type.Optional(day),
      to: Type.Optional(day),
      after: Type.Optional(number),
    }),
    reply: object({
      items: Type.Array(invoice),
      after: orNull(Type.String({ description: "`after` of the next page. null on the last one." })),
    }),
  },
  listWaitingInvoices: {
    summary: "List ended billing periods that wait for an address or for `invoices` in router.yaml",
    may: ["operator"],
    reply: Type.Array(open),
  },
} as const satisfies RouteTable;
