/** The package of the account: what is booked, what a change would cost, and the change itself. Amounts are net, in cents. */
import { Type } from "typebox";
import { cents, count, credits, instant, object, ofAccount, orNull, packageName, type RouteTable } from "./route.ts";

const action = Type.Enum(["trial", "order", "upgrade", "downgrade", "cancel", "withdraw"]);

const pending = orNull(
  object(
    { change: Type.Enum(["cancellation", "downgrade"]), package: orNull(packageName), at: instant },
    { description: "What happens at the end of the period unless it is withdrawn." },
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
  Type.Integer({ description: "Days of a free trial that begins under these terms; null: the package has no trial." }),
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
const operatorWish = { action, package: Type.Optional(Type.String({ description: "In any case." })) };

export const packageContract = {
  showPackage: {
    summary:
      "The current package, what is pending, what is used of the quota, and all packages that the account may order",
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
            description: "Terms that are announced, for periods that begin then or later.",
          }),
          actions: Type.Array(action, { description: "What an Owner could do to get this package." }),
        }),
      ),
      actions: Type.Array(action, { description: "What an Owner could do besides." }),
    }),
  },
  quotePackage: {
    summary: "What a change costs now and when it happens. Changes nothing",
    may: ["owner", "operator"],
    of: "account",
    body: wish,
    operator: { body: object(operatorWish) },
    reply: object({
      quoteId: Type.String(),
      action,
      dueCents: cents,
      charges: Type.Array(invoiceLine),
      thenCents: orNull(Type.Integer({ description: "Per month, from the next period on." })),
      withdraws: pending,
      after: subscription,
    }),
    status: 201,
  },
  changePackage: {
    summary:
      "Charges exactly what the quote says, once however often it is sent; 409 price_changed if that has changed",
    may: ["owner", "operator"],
    of: "account",
    body: object({ ...wish.properties, quoteId: Type.String({ minLength: 16, maxLength: 100 }) }),
    // Without a quote the operator orders at the price of the day.
    operator: { body: object({ ...operatorWish, quoteId: Type.Optional(Type.String()) }) },
    reply: subscription,
  },
  listInvoiceLines: {
    summary: "Everything that was charged, oldest first",
    ...ofAccount,
    reply: object({ items: Type.Array(invoiceLine), total: count, totalCents: cents }),
  },
} as const satisfies RouteTable;
