/** Routes of the account's package: shows it, quotes changes and makes them. Amounts are net, in cents. */
import { Type } from "typebox";
import { cents, count, credits, instant, object, ofAccount, orNull, packageName, type RouteTable } from "./route.ts";

const action = Type.Enum(["trial", "order", "upgrade", "downgrade", "cancel", "withdraw"]);

const pending = orNull(
  object(
    { change: Type.Enum(["cancellation", "downgrade"]), package: orNull(packageName), at: instant },
    { description: "The change at the end of the period, unless it is withdrawn." },
  ),
);

export const subscriptionFields = {
  package: orNull(packageName),
  state: Type.Enum(["no package", "trial", "active"]),
  periodStart: orNull(instant),
  periodEnd: orNull(instant),
  pending,
};
const subscription = object(subscriptionFields);

export const termsFields = {
  priceCents: cents,
  creditsPerMonth: credits,
  requestsPerMinute: count,
  parallelRequests: count,
  emailSupport: Type.Boolean(),
};

const trialDays = orNull(
  Type.Integer({ description: "Days of a free trial under these terms. null if the package has no trial." }),
);

const invoiceLine = object({
  reason: Type.Enum(["package", "upgrade"]),
  package: packageName,
  periodStart: instant,
  periodEnd: instant,
  days: count,
  periodDays: count,
  amountCents: cents,
});

const wish = object({ action, package: Type.Optional(packageName) });
const operatorWish = {
  action,
  package: Type.Optional(Type.String({ description: "The package's name, case-insensitive." })),
};

export const packageContract = {
  showPackage: {
    summary:
      "Show the current package, a pending change, the use of the quota, and all packages that the account may order",
    ...ofAccount,
    reply: object({
      subscription,
      quota: orNull(object({ credits, used: credits, left: credits, exhausted: Type.Boolean() })),
      packages: Type.Array(
        object({
          name: packageName,
          ...termsFields,
          trialDays,
          coming: Type.Array(object({ at: instant, ...termsFields, trialDays }), {
            description: "Announced terms for periods that begin at or after `at`.",
          }),
          actions: Type.Array(action, { description: "Actions by which an Owner could get this package." }),
        }),
      ),
      actions: Type.Array(action, { description: "The Owner's other actions, which name no package." }),
    }),
  },
  quotePackage: {
    summary: "Quote a change: its price and its time",
    may: ["owner", "operator"],
    of: "account",
    body: wish,
    operator: { body: object(operatorWish) },
    reply: object({
      quoteId: Type.String(),
      action,
      dueCents: cents,
      charges: Type.Array(invoiceLine),
      thenCents: orNull(Type.Integer({ description: "The price per month from the next period on." })),
      withdraws: pending,
      after: subscription,
    }),
    status: 201,
  },
  changePackage: {
    summary:
      "Make the quoted change and charge exactly its price, once however often it is sent. 409 price_changed if the price has changed",
    may: ["owner", "operator"],
    of: "account",
    body: object({ ...wish.properties, quoteId: Type.String({ minLength: 16, maxLength: 100 }) }),
    // Without a quote, the operator orders at the current price.
    operator: { body: object({ ...operatorWish, quoteId: Type.Optional(Type.String()) }) },
    reply: subscription,
  },
  listInvoiceLines: {
    summary: "List all invoice lines, oldest first",
    ...ofAccount,
    reply: object({ items: Type.Array(invoiceLine), total: count, totalCents: cents }),
  },
} as const satisfies RouteTable;
