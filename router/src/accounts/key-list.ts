/**
 * Lists a page of keys that match a filter. Each has its usage in this billing period, the reason if it cannot be used,
 * and the limit that it will reach first (its own, its user's or the package's).
 */
import { sql, type Selectable } from "kysely";
import { millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { activeKeysMax, isLiving, keyStates, type KeyState } from "./keys.ts";
import { plainRow } from "../rights/plain-row.ts";
import { containing, readPage, type Page } from "../rights/list-page.ts";
import { packageUse, type PackageUse } from "../subscriptions/package-use.ts";

interface KeyFilter {
  /** Lists only this key. */
  readonly id?: KeyId;
  readonly userId?: UserId;
  readonly state?: KeyState;
  /** If false, revoked keys are left out. */
  readonly revoked?: boolean;
  /** Matches this text in the name, the user's e-mail address or the last four characters. */
  readonly search?: string;
}

/** Numbers in names count as such: key 9 precedes key 10. Each gets leading zeros, of which the last twelve digits stay. */
const naturally = (column: string) =>
  String.raw`regexp_replace(regexp_replace(lower(${column}), '\d+', '000000000000\&', 'g'), '\d*(\d{12})(?!\d)', '\1', 'g')`;

const orders = {
  name: naturally("name"),
  user: "user_email",
  state: `array_position(array['${keyStates.join("','")}'], state)`,
  used: "credits_used",
  lastUsed: "last_used_at",
  created: "created_at",
  expires: "expires_at",
} as const;

export async function listKeys(
  database: Database,
  accountId: AccountId,
  filter: KeyFilter,
  page: Page<keyof typeof orders>,
  nowMs: number,
) {
  const use = await packageUse(database, accountId, nowMs);
  const now = sql`${instantText(nowMs)}::timestamptz`;
  const totals = (scope: "key" | "user", subject: string) => sql`
    left join usage_totals ${sql.ref(`of_${scope}`)} on ${sql.ref(`of_${scope}.account_id`)} = ${accountId}
      and ${sql.ref(`of_${scope}.period_start`)} = ${use.periodStart}::timestamptz
      and ${sql.ref(`of_${scope}.scope`)} = ${scope} and ${sql.ref(`of_${scope}.subject`)} = ${sql.ref(subject)}::text`;
  const ofAccount = use.quota === null ? "no-package" : use.exhaustedUntil ? "quota-exhausted" : null;
  const matching = sql`
    with keys as (
      select k.id, k.name, k.user_id, u.email as user_email,
        case when k.revoked_at is not null then 'revoked' when k.expires_at <= ${now} then 'expired'
          when u.blocked then 'user-blocked'
          when k.limit_reached_until > ${now} or u.limit_reached_until > ${now} then 'blocked-by-limit'
          else 'active' end as state,
        case when k.revoked_at is not null and k.regenerated_as is not null then 'regenerated'
          when k.revoked_at is not null then 'revoked' when k.expires_at <= ${now} then 'expired'
          when u.blocked then 'user-blocked' when a.blocked_at is not null then 'account-blocked'
          when u.limit_reached_until > ${now} then 'user-limit'
          when k.limit_reached_until > ${now} then 'key-limit' else ${ofAccount}::text end as reason,
        k.last_four, k.allowed_models,
        case when k.allowed_models is null then u.allowed_models when u.allowed_models is null then k.allowed_models
          else array(select m from unnest(k.allowed_models) m where m = any(u.allowed_models)) end as usable_models,
        k.credit_limit, coalesce(of_key.credits, 0) as credits_used,
        u.credit_limit as user_limit, coalesce(of_user.credits, 0) as user_used,
        k.expires_at, l.last_used_at, k.created_at
      from api_keys k join users u on u.id = k.user_id join accounts a on a.id = k.account_id left join key_uses l on l.key_id = k.id
        ${totals("key", "k.id")} ${totals("user", "u.id")}
      where k.account_id = ${accountId} and (${filter.userId ?? null}::uuid is null or k.user_id = ${filter.userId ?? null})
        and (${filter.id ?? null}::uuid is null or k.id = ${filter.id ?? null})
        and (${filter.revoked !== false} or k.revoked_at is null)
        and ${containing(filter.search, "k.name || ' ' || u.email || ' ' || k.last_four")}
    ) select * from keys where ${filter.state ?? null}::text is null or state = ${filter.state ?? null}`;
  const { rows, total } = await readPage<Row>(database, matching, page, orders[page.sort], "id");
  const items = rows.map(({ userLimit, userUsed, ...key }) => ({
    ...plainRow(key),
    binding: bindingOf(key, { used: userUsed, limit: userLimit }, use),
  }));
  return { total, items };
}

/** Counts the revoked keys, of one user if `userId` is given, and the living keys of `ownerId`. */
export async function countKeys(
  { kysely }: Database,
  accountId: AccountId,
  userId: UserId | undefined,
  ownerId: UserId | undefined,
  nowMs: number,
) {
  const { rows } = await sql<{ readonly revoked: number; readonly used: number }>`
    select count(*) filter (where revoked_at is not null
        and (${userId ?? null}::uuid is null or user_id = ${userId ?? null}))::integer as revoked,
      count(*) filter (where user_id = ${ownerId ?? null}::uuid and ${isLiving(nowMs)})::integer as used
    from api_keys where account_id = ${accountId}`.execute(kysely);
  const { revoked, used } = rows[0]!;
  return { revoked, own: ownerId === undefined ? null : { used, max: activeKeysMax } };
}

type StoredKey = Omit<
  Selectable<Schema["apiKeys"]>,
  "accountId" | "hash" | "limitReachedUntil" | "revokedAt" | "regeneratedAs"
>;

interface Row extends StoredKey {
  readonly userEmail: string;
  readonly state: KeyState;
  /** Why the key cannot be used; null if it can. */
  readonly reason:
    | Exclude<KeyState, "active" | "blocked-by-limit">
    | ("regenerated" | "account-blocked" | "user-limit" | "key-limit" | "no-package" | "quota-exhausted")
    | null;
  readonly usableModels: string[] | null;
  readonly creditsUsed: Millicredits;
  readonly userLimit: Millicredits | null;
  readonly userUsed: Millicredits;
  readonly lastUsedAt: Temporal.Instant | null;
}

/** Returns the limit with the fewest credits left; null without a package. */
function bindingOf(
  { creditsUsed, creditLimit }: Pick<Row, "creditsUsed" | "creditLimit">,
  user: { readonly used: Millicredits; readonly limit: Millicredits | null },
  use: PackageUse,
) {
  if (use.quota === null) return null;
  const limits = [
    { by: "key", used: creditsUsed, limit: creditLimit } as const,
    { by: "user", ...user } as const,
    { by: "package", used: use.used, limit: use.quota } as const,
  ].flatMap(({ limit, ...rest }) => (limit === null ? [] : [{ ...rest, limit }]));
  const [least] = limits.toSorted((a, b) => Number(a.limit - a.used - (b.limit - b.used)));
  const { used, limit } = least!;
  return plainRow({ ...least!, left: millicredits(limit > used ? limit - used : 0n) });
}
