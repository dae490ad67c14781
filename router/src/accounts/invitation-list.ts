/** Lists a page of an account's invitations that match a filter, with their states. */
import { sql } from "kysely";
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../db/database.ts";
import type { Role } from "../db/schema.ts";
import { plainRow } from "../rights/plain-row.ts";
import { containing, readPage, type Page } from "../rights/list-page.ts";

export type InvitationState = "open" | "accepted" | "expired" | "withdrawn";

interface InvitationFilter {
  readonly role?: Role;
  readonly state?: InvitationState;
  /** Matches this text in the e-mail address. */
  readonly search?: string;
}

const orders = {
  email: "email",
  role: "array_position(array['owner','admin','member'], role)",
  state: "array_position(array['open','expired','withdrawn','accepted'], state)",
  created: "created_at",
  expires: "expires_at",
} as const;

export async function listInvitations(
  database: Database,
  accountId: AccountId,
  filter: InvitationFilter,
  page: Page<keyof typeof orders>,
  nowMs: number,
) {
  const matching = sql`
    with invited as (
      select i.user_id, u.email, u.role,
        case when i.used_at is not null then 'accepted' when i.withdrawn_at is not null then 'withdrawn'
          when i.expires_at > ${instantText(nowMs)}::timestamptz then 'open' else 'expired' end as state,
        i.created_at, i.expires_at
      from invitations i join users u on u.id = i.user_id
      where u.account_id = ${accountId} and u.deleted_at is null
        and (${filter.role ?? null}::text is null or u.role = ${filter.role ?? null})
        and ${containing(filter.search, "u.email")}
    ) select * from invited where ${filter.state ?? null}::text is null or state = ${filter.state ?? null}`;
  const { rows, total } = await readPage<Row>(database, matching, page, orders[page.sort], "user_id");
  return { total, items: rows.map(plainRow) };
}

interface Row {
  readonly userId: UserId;
  readonly email: string;
  readonly role: Role;
  readonly state: InvitationState;
  readonly createdAt: Temporal.Instant;
  readonly expiresAt: Temporal.Instant;
}
