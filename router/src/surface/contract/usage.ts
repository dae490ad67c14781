/** Routes of an account's credits, usage and refusals. Members see only their own. */
import { Type } from "typebox";
import { usageSums, type UsageSums } from "../../usage/usage-columns.ts";
import { subscriptionFields } from "./package.ts";
import {
  count,
  credits,
  day,
  everybody,
  id,
  instant,
  object,
  ofAccount,
  orNull,
  pageQuery,
  type RouteTable,
} from "./route.ts";

const sums = Object.fromEntries(usageSums.map((name) => [name, name === "credits" ? credits : count])) as UsageSums<
  typeof count,
  typeof credits
>;
const parts = ["day", "model", "key", "user"] as const;

const filters = {
  from: Type.Optional(day),
  to: Type.Optional(day),
  by: Type.Optional(
    Type.String({
      pattern: "^(day|model|key|user)(,(day|model|key|user)){0,3}$",
      description:
        "One row per combination of these: any of day, model, key and user, separated by commas. Defaults to day.",
    }),
  ),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  keyId: Type.Optional(id),
  userId: Type.Optional(id),
};
const sort = Type.Enum([...usageSums, ...parts]);

export const usedKey = object({
  id,
  kind: Type.Enum(["api", "test-chat"]),
  name: orNull(Type.String()),
  lastFour: orNull(Type.String()),
  userEmail: orNull(Type.String()),
});
export const usedBy = object({ id, email: orNull(Type.String()) });

const row = object({
  day: Type.Optional(day),
  model: Type.Optional(Type.String()),
  key: Type.Optional(usedKey),
  user: Type.Optional(usedBy),
  ...sums,
});

export const usageContract = {
  showCredits: {
    summary:
      "Show the quota, the remaining credits and how long they will last, the request rate, and the user's own limit",
    ...ofAccount,
    reply: object({
      asOf: instant,
      ...subscriptionFields,
      quota: orNull(credits),
      used: orNull(credits),
      remaining: orNull(Type.String({ description: "Negative if the last requests exceeded the quota." })),
      exhaustedUntil: orNull(instant),
      forecast: orNull(
        object(
          {
            perDay: credits,
            until: orNull(instant),
            atEnd: credits,
          },
          {
            description:
              "Forecast at the pace of the last 7 days. `until` is null if the quota lasts to the end of the period. `atEnd`: what will be used by then. null if unknown.",
          },
        ),
      ),
      rate: object(
        {
          lastMinute: count,
          perMinute: orNull(count),
          parallel: count,
          parallelMax: orNull(count),
          peakMinute: count,
          peakParallel: count,
        },
        { description: "The use of the limits now, and the highest of the last 24 hours." },
      ),
      own: object({
        used: orNull(credits),
        limit: orNull(credits),
        remaining: orNull(Type.String()),
        reachedUntil: orNull(instant),
        hasCalled: Type.Boolean({ description: "Whether this user has ever used a model." }),
      }),
      hasCalled: Type.Boolean({ description: "Whether anybody in the account has ever used a model." }),
      checklist: orNull(
        object(
          { package: Type.Boolean(), key: Type.Boolean(), call: Type.Boolean(), colleagues: orNull(Type.Boolean()) },
          {
            description:
              "Which first steps of this person are done. `colleagues` is null for Members. null for the operator, and once all are done or the person has hidden them.",
          },
        ),
      ),
    }),
  },
  showUsage: {
    summary:
      "Show requests, tokens and credits of days (German time) or the billing period, by day, model, key and user",
    ...ofAccount,
    query: pageQuery(sort, filters),
    reply: object({
      by: Type.Array(Type.Enum(parts)),
      from: day,
      to: day,
      periodStart: orNull(instant),
      periodEnd: orNull(instant),
      asOf: instant,
      filter: object(
        { model: orNull(Type.String()), key: orNull(usedKey), user: orNull(usedBy) },
        {
          description: "The names of the model, key and user to which the rows are restricted. null if not restricted.",
        },
      ),
      totals: object(sums, { description: "Sums of all rows that match the filters, on all pages." }),
      items: Type.Array(row),
      total: count,
      page: count,
      pageSize: count,
    }),
  },
  exportUsage: {
    summary: "Export all of these rows as CSV",
    may: everybody,
    query: object({
      search: Type.Optional(Type.String({ maxLength: 200 })),
      sort: Type.Optional(sort),
      order: Type.Optional(Type.Enum(["asc", "desc"])),
      ...filters,
    }),
    stream: "text/csv",
  },
  showRefusals: {
    summary: "Count refused requests of the last 24 hours, or of days (German time), by code, with advice",
    ...ofAccount,
    query: object({ from: Type.Optional(day), to: Type.Optional(day) }),
    reply: object({
      since: instant,
      asOf: instant,
      total: count,
      codes: Type.Array(
        object({
          code: Type.String(),
          status: count,
          advice: Type.String({ description: "A word for the advice. The page has its sentence." }),
          count,
          keys: Type.Array(object({ keyId: id, count })),
        }),
      ),
    }),
  },
  evaluateCredits: {
    summary: "Evaluate quotas and limits now and write due invoice lines and invoices",
    may: ["operator"],
    reply: object({ charged: count, invoiced: count, accounts: count, changed: count, notices: count }),
  },
  listSetAside: {
    summary: "List usage records that were set aside and billed to nobody, newest first",
    may: ["operator"],
    query: object({
      node: Type.Optional(Type.String({ maxLength: 64 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 999_999_999 })),
    }),
    reply: Type.Array(
      object(
        {
          at: instant,
          node: Type.String(),
          requestId: Type.String(),
          attempt: Type.Number(),
          reason: Type.String(),
          detail: orNull(Type.String()),
          accountId: Type.String(),
          userId: Type.String(),
          keyId: Type.String(),
          model: Type.String(),
          factor: Type.String({ description: "Millicredits per token." }),
          promptTokens: Type.String(),
          completionTokens: Type.String(),
          source: Type.String(),
          outcome: Type.String(),
        },
        { description: "Values as sent by the node. Counts may be no numbers." },
      ),
    ),
  },
  traceUsage: {
    summary: "List requests by the time of acceptance, without content, to repeat their load in a simulation",
    may: ["operator"],
    query: object({
      from: Type.Optional(day),
      to: Type.Optional(day),
      after: Type.Optional(id),
    }),
    reply: object({
      items: Type.Array(
        object({
          atMs: count,
          accountId: id,
          model: Type.String(),
          inputTokens: count,
          outputTokens: count,
        }),
      ),
      after: orNull(Type.String({ description: "`after` of the next page. null on the last one." })),
    }),
  },
} as const satisfies RouteTable;
