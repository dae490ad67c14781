/**
 * Lists keys: a page of those that match, each with its use in this billing period, the reason if it cannot be used,
 * and the limit that stops it first (its own, its user's or the package's).
 */
import { sql } from "kysely";
import { millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../db/database.ts";
import { keyStates, type KeyState } from "./keys.ts";
import { plainRow } from "../rights/plain-row.ts";
import { containing, readPage, type Page } from "../rights/list-page.ts";
import { packageUse, type PackageUse } from "../subscriptions/package-use.ts";

interface KeyFilter {
  /** Only this one. */
  readonly id?: KeyId;
  readonly userId?: UserId;
  readonly state?: KeyState;
  /** Text in the name, the user's e-mail address or the last four characters. */
  readonly search?: string;
}

const orders = {
  name: "lower(name)",
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
  const used = (scope: "key" | "user", subject: string) => sql`
    coalesce((select t.credits from usage_totals t where t.account_id = k.account_id
      and t.period_start = ${use.periodStart}::timestamptz and t.scope = ${scope} and t.subject = ${sql.ref(subject)}::text), 0)`;
  const matching = sql`
    with keys as (
      select k.id, k.name, k.user_id, u.email as user_email, k.last_four, k.allowed_models, u.allowed_models as user_models,
        k.credit_limit, u.credit_limit as user_limit, ${used("key", "k.id")} as credits_used,
        ${used("user", "u.id")} as user_used, u.limit_reached_until > ${now} as user_stopped,
        k.regenerated_as, k.expires_at, l.last_used_at, k.created_at,
        case when k.revoked_at is not null then 'revoked' when k.expires_at <= ${now} then 'expired'
          when u.blocked then 'user-blocked'
          when k.limit_reached_until > ${now} or u.limit_reached_until > ${now} then 'blocked-by-limit'
          else 'active' end as state
      from api_keys k join users u on u.id = k.user_id left join key_uses l on l.key_id = k.id
      where k.account_id = ${accountId} and (${filter.userId ?? null}::uuid is null or k.user_id = ${filter.userId ?? null})
        and (${filter.id ?? null}::uuid is null or k.id = ${filter.id ?? null})
        and ${containing(filter.search, "k.name || ' ' || u.email || ' ' || k.last_four")}
    ) select * from keys where ${filter.state ?? null}::text is null or state = ${filter.state ?? null}`;
  const { rows, total } = await readPage<Row>(database, matching, page, orders[page.sort], "id");
  return { total, items: rows.map((row) => viewListed(row, use)) };
}

interface Row {
  readonly id: KeyId;
  readonly name: string;
  readonly userId: UserId;
  readonly userEmail: string;
  readonly lastFour: string;
  readonly allowedModels: string[] | null;
  readonly userModels: string[] | null;
  readonly creditLimit: Millicredits | null;
  readonly userLimit: Millicredits | null;
  readonly creditsUsed: Millicredits;
  readonly userUsed: Millicredits;
  readonly userStopped: boolean | null;
  readonly regeneratedAs: KeyId | null;
  readonly expiresAt: Temporal.Instant | null;
  readonly lastUsedAt: Temporal.Instant | null;
  readonly createdAt: Temporal.Instant;
  readonly state: KeyState;
}

function viewListed(row: Row, use: PackageUse) {
  const { id, name, userId, userEmail, state, lastFour, allowedModels, userModels, creditLimit, creditsUsed } = row;
  const { expiresAt, lastUsedAt, createdAt } = row;
  const usableModels =
    allowedModels && userModels
      ? allowedModels.filter((model) => userModels.includes(model))
      : (allowedModels ?? userModels);
  return {
    ...plainRow({
      id,
      name,
      userId,
      userEmail,
      state,
      reason: reasonOf(row, use),
      lastFour,
      allowedModels,
      usableModels,
    }),
    ...plainRow({ creditLimit, creditsUsed, binding: bindingOf(row, use), expiresAt, lastUsedAt, createdAt }),
  };
}

type KeyReason =
  | Exclude<KeyState, "active" | "blocked-by-limit">
  | ("regenerated" | "user-limit" | "key-limit" | "no-package" | "quota-exhausted");

/** Why the key cannot be used; null: it can. */
function reasonOf({ state, regeneratedAs, userStopped }: Row, use: PackageUse): KeyReason | null {
  if (state === "revoked") return regeneratedAs === null ? "revoked" : "regenerated";
  if (state === "blocked-by-limit") return userStopped ? "user-limit" : "key-limit";
  if (state !== "active") return state;
  if (use.quota === null) return "no-package";
  return use.exhaustedUntil ? "quota-exhausted" : null;
}

/** The limit with the least left; null without a package. */
function bindingOf({ creditLimit, userLimit, creditsUsed, userUsed }: Row, use: PackageUse) {
  if (use.quota === null) return null;
  const limits = [
    ...(creditLimit === null ? [] : [{ by: "key", used: creditsUsed, limit: creditLimit } as const]),
    ...(userLimit === null ? [] : [{ by: "user", used: userUsed, limit: userLimit } as const]),
    { by: "package", used: use.used, limit: use.quota } as const,
  ];
  const [least] = limits.toSorted((a, b) => Number(a.limit - a.used - (b.limit - b.used)));
  const { used, limit } = least!;
  return plainRow({ ...least!, left: millicredits(limit > used ? limit - used : 0n) });
}
