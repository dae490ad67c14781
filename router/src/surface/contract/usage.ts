/** How an account stands, what used its credits, and what was refused. Members see their own. */
import { Type } from "typebox";
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
  packageName,
  pageQuery,
  type RouteTable,
} from "./route.ts";

const sums = {
  ...{ requests: count, promptTokens: count, completionTokens: count, totalTokens: count },
  estimatedTokens: Type.Integer({ minimum: 0, description: "The part of the tokens that was estimated." }),
  credits,
};

const filters = {
  from: Type.Optional(day),
  to: Type.Optional(day),
  by: Type.Optional(
    Type.String({
      pattern: "^(day|model|key|user)(,(day|model|key|user)){0,3}$",
      description: "What a row is about: any of day, model, key and user, separated by commas. Otherwise day.",
    }),
  ),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  keyId: Type.Optional(id),
  userId: Type.Optional(id),
};
const sort = Type.Enum([
  "credits",
  "requests",
  "promptTokens",
  "completionTokens",
  "totalTokens",
  "day",
  "model",
  "key",
  "user",
]);

const usedKey = object({
  id,
  kind: Type.Enum(["api", "test-chat"]),
  name: orNull(Type.String()),
  lastFour: orNull(Type.String()),
  userEmail: orNull(Type.String()),
});
const usedBy = object({ id, email: orNull(Type.String()) });

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
      "Quota, what is left of it and for how long, requests of the last minute and at the moment, one's own limit",
    ...ofAccount,
    reply: object({
      asOf: instant,
      package: orNull(packageName),
      periodStart: orNull(instant),
      periodEnd: orNull(instant),
      quota: orNull(credits),
      used: orNull(credits),
      remaining: orNull(Type.String({ description: "Below zero where single requests passed beyond the quota." })),
      exhaustedUntil: orNull(instant),
      forecast: orNull(
        object(
          {
            perDay: credits,
            until: orNull(instant),
          },
          {
            description:
              "At the pace of the last 7 days. `until` null: the quota lasts to the end of the period. null: not known.",
          },
        ),
      ),
      rate: object({ lastMinute: count, perMinute: orNull(count), parallel: count, parallelMax: orNull(count) }),
      own: object({
        used: orNull(credits),
        limit: orNull(credits),
        remaining: orNull(Type.String()),
        reachedUntil: orNull(instant),
      }),
    }),
  },
  showUsage: {
    summary: "Requests, tokens and credits of German days or of the billing period, by any of day, model, key and user",
    ...ofAccount,
    query: pageQuery(sort, filters),
    reply: object({
      by: Type.Array(Type.Enum(["day", "model", "key", "user"])),
      from: day,
      to: day,
      periodStart: orNull(instant),
      periodEnd: orNull(instant),
      asOf: instant,
      filter: object(
        { model: orNull(Type.String()), key: orNull(usedKey), user: orNull(usedBy) },
        { description: "What all of it is about, with its names. null: not restricted by that." },
      ),
      totals: object(sums, { description: "Of all rows that the filters let through, on every page." }),
      items: Type.Array(row),
      total: count,
      page: count,
      pageSize: count,
    }),
  },
  exportUsage: {
    summary: "The same rows, all of them, as CSV",
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
    summary: "Refused requests of the last 24 hours, or of German days, by code, with what helps",
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
          advice: Type.String({ description: "A word for what helps; the sentence is the page's." }),
          count,
          keys: Type.Array(object({ keyId: id, count })),
        }),
      ),
    }),
  },
  evaluateCredits: {
    summary: "Compares usage with quotas and limits now, and writes the invoice lines of periods that have begun",
    may: ["operator"],
    reply: object({ charged: count, accounts: count, changed: count, notices: count }),
  },
  listSetAside: {
    summary: "Usage records that were set aside and billed to nobody, the youngest first",
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
        { description: "As the node said it; what it says of a count may be no number." },
      ),
    ),
  },
} as const satisfies RouteTable;
