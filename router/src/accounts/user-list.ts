/** Lists a page of an account's users that match a filter, with their usage and states. */
import { sql, type Selectable } from "kysely";
import type { Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../db/database.ts";
import type { Role, Schema } from "../db/schema.ts";
import { plainRow } from "../rights/plain-row.ts";
import { containing, readPage, type Page } from "../rights/list-page.ts";
import { packageUse } from "../subscriptions/package-use.ts";

/** `invited`: has not joined yet. `uninvited`: cannot join, because the invitation expired or was withdrawn. */
const userStates = ["active", "invited", "uninvited", "blocked"] as const;
type UserState = (typeof userStates)[number];

interface UserFilter {
  /** Lists only this user. */
  readonly id?: UserId;
  readonly role?: Role;
  readonly state?: UserState;
  /** Matches this text in the name or e-mail address. */
  readonly search?: string;
}

const orders = {
  email: "email",
  role: "array_position(array['owner','admin','member'], role)",
  state: `array_position(array['${userStates.join("','")}'], state)`,
  used: "credits_used",
  keys: "keys",
  lastLogin: "last_login_at",
  created: "created_at",
} as const;

export async function listUsers(
  database: Database,
  accountId: AccountId,
  filter: UserFilter,
  page: Page<keyof typeof orders>,
  nowMs: number,
) {
  const { periodStart } = await packageUse(database, accountId, nowMs);
  const now = sql`${instantText(nowMs)}::timestamptz`;
  const matching = sql`
    with people as (
      select u.id, u.email, u.name, u.role,
        case when u.blocked then 'blocked' when c.password is not null then 'active'
          when i.expires_at > ${now} and i.withdrawn_at is null and i.used_at is null then 'invited'
          else 'uninvited' end as state,
        case when u.blocked then 'blocked' when c.password is not null and u.limit_reached_until > ${now} then 'user-limit'
          when c.password is not null then null when i.withdrawn_at is not null then 'invitation-withdrawn'
          when i.expires_at > ${now} and i.used_at is null then 'invited' else 'invitation-expired' end as reason,
        case when c.password is null and i.withdrawn_at is null and i.used_at is null then i.expires_at end as invited_until,
        u.allowed_models, u.credit_limit,
        coalesce((select t.credits from usage_totals t where t.account_id = u.account_id
          and t.period_start = ${periodStart}::timestamptz and t.scope = 'user' and t.subject = u.id::text), 0) as credits_used,
        coalesce(u.limit_reached_until > ${now}, false) as limit_reached,
        (select count(*)::integer from api_keys k where k.user_id = u.id and k.revoked_at is null
          and (k.expires_at is null or k.expires_at > ${now})) as keys,
        c.last_login_at, u.created_at
      from users u left join credentials c on c.user_id = u.id left join invitations i on i.user_id = u.id
      where u.account_id = ${accountId} and u.deleted_at is null
        and (${filter.id ?? null}::uuid is null or u.id = ${filter.id ?? null})
        and (${filter.role ?? null}::text is null or u.role = ${filter.role ?? null})
        and ${containing(filter.search, "concat_ws(' ', u.name, u.email)")}
    ) select * from people where ${filter.state ?? null}::text is null or state = ${filter.state ?? null}`;
  const { rows, total } = await readPage<Row>(database, matching, page, orders[page.sort], "id");
  return { total, items: rows.map(plainRow) };
}

type StoredUser = Omit<
  Selectable<Schema["users"]>,
  "accountId" | "blocked" | "limitReachedUntil" | "language" | "theme" | "deletedAt"
>;

interface Row extends StoredUser {
  readonly state: UserState;
  /** Why the user cannot sign in or, for `user-limit`, why the user's keys cannot be used; null if neither. */
  readonly reason: "blocked" | "invited" | "invitation-expired" | "invitation-withdrawn" | "user-limit" | null;
  readonly invitedUntil: Temporal.Instant | null;
  readonly creditsUsed: Millicredits;
  readonly limitReached: boolean;
  readonly keys: number;
  readonly lastLoginAt: Temporal.Instant | null;
}
