/** Routes of notices. A notice has an event's facts, and the page words them. Members see notices about themselves and the account. */
import { Type, type TSchema } from "typebox";
import { termsFields } from "./package.ts";
import {
  count,
  credits,
  everybody,
  id,
  instant,
  modelStatus,
  object,
  ofAccount,
  orNull,
  type RouteTable,
} from "./route.ts";

const packageTerms = object(termsFields);
const status = orNull(modelStatus);

function notice<const K extends readonly [string, ...string[]], F extends Record<string, TSchema>>(kinds: K, facts: F) {
  return object({
    id,
    kind: Type.Enum([...kinds] as [...K]),
    at: instant,
    read: Type.Boolean({ description: "Whether this user has read it, or nothing is left to do about it." }),
    user: orNull(object({ id, email: Type.String() })),
    key: orNull(object({ id, name: Type.String(), lastFour: Type.String() })),
    facts: object(facts),
  });
}

const aboutStatus = { model: Type.String(), from: status, to: status };
const aboutFactor = {
  model: Type.String(),
  from: credits,
  to: credits,
  coming: Type.Array(object({ validFrom: instant, factor: credits })),
};
/** An entry of the changelog. `news` has the catalogue's simultaneous changes of these models, which get no notices of their own. */
const aboutChange = {
  at: instant,
  text: object({ de: Type.String(), en: Type.String() }),
  models: Type.Array(Type.String()),
  news: Type.Array(
    Type.Union([
      object({ kind: Type.Literal("model-status"), facts: object(aboutStatus) }),
      object({ kind: Type.Literal("model-factor"), facts: object(aboutFactor) }),
    ]),
  ),
};

const anyNotice = Type.Union([
  notice(["quota-75", "quota-90", "quota-100"], { package: Type.String(), quota: credits, periodEnd: instant }),
  notice(["key-limit", "user-limit"], { limit: credits, periodEnd: instant }),
  notice(["key-expiring"], { expiresAt: instant }),
  notice(["trial-ending"], { endsAt: instant }),
  notice(["package-ending"], { endsAt: instant, package: Type.String() }),
  notice(["package-terms"], {
    package: Type.String(),
    at: instant,
    from: packageTerms,
    to: orNull(packageTerms),
  }),
  notice(["model-status"], aboutStatus),
  notice(["model-factor"], aboutFactor),
  notice(["model-change"], aboutChange),
]);

export const noticesContract = {
  listNotices: {
    summary: "List notices, newest first, with the number of unread ones",
    ...ofAccount,
    query: object({
      page: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
      pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
      unread: Type.Optional(Type.Boolean()),
    }),
    reply: object({
      items: Type.Array(anyNotice),
      total: count,
      page: count,
      pageSize: count,
      unread: count,
    }),
  },
  readNotices: {
    summary: "Mark the given notices, or all, as read by this user",
    may: everybody,
    body: object({ ids: Type.Optional(Type.Array(id, { maxItems: 200 })) }),
    reply: object({ unread: count }),
  },
} as const satisfies RouteTable;
