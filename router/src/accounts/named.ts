/** Finds an account, user or key by an operator's input: an id, the beginning of an id, or a name. */
import { sql, type RawBuilder } from "kysely";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import { RequestError } from "../rights/request-error.ts";

const prefixLengthMin = 4;
const shownMax = 5;

/**
 * Prefers a whole id, then a name in any case, then the beginning of an id. Throws a `RequestError` if nothing or more
 * than one account matches.
 */
export async function accountNamed({ kysely }: Database, named: string): Promise<AccountId> {
  const found = await sql<Candidate<AccountId>>`
    select id, '' as label, case when id::text = ${named} then 1 when lower(name) = lower(btrim(${named})) then 2 else 3 end as rank
    from accounts
    where id::text = ${named} or (lower(name) = lower(btrim(${named})) and deleted_at is null) or id::text like ${prefixOf(named)}
    order by rank, id limit ${shownMax + 1}`.execute(kysely);
  return onlyOne("account", named, found.rows).id;
}

/** Like `accountNamed`. The name of a user is the e-mail address. */
export async function userNamed({ kysely }: Database, named: string): Promise<OfAccount<UserId>> {
  const found = await sql<Candidate<UserId> & { accountId: AccountId }>`
    select id, account_id, '' as label,
      case when id::text = ${named} then 1 when email = lower(btrim(${named})) then 2 else 3 end as rank
    from users
    where id::text = ${named} or (email = lower(btrim(${named})) and deleted_at is null) or id::text like ${prefixOf(named)}
    order by rank, id limit ${shownMax + 1}`.execute(kysely);
  return onlyOne("user", named, found.rows);
}

interface KeyScope {
  readonly accountId?: AccountId | undefined;
  readonly userId?: UserId | undefined;
}

/**
 * Like `accountNamed`. By name, keys that are not revoked are preferred. `scope` limits the search to keys of an account
 * or user.
 */
export async function keyNamed({ kysely }: Database, named: string, scope: KeyScope = {}): Promise<OfAccount<KeyId>> {
  const { accountId, userId } = scope;
  const isIn = (column: string, id: string | undefined): RawBuilder<boolean> =>
    id === undefined ? sql`true` : sql`${sql.ref(column)} = ${id}`;
  const found = await sql<Candidate<KeyId> & { accountId: AccountId }>`
    select k.id, k.account_id, ' of ' || u.email as label,
      case when k.id::text = ${named} then 1
        when lower(k.name) = lower(btrim(${named})) then case when k.revoked_at is null then 2 else 3 end
        else 4 end as rank
    from api_keys k join users u on u.id = k.user_id
    where (k.id::text = ${named} or lower(k.name) = lower(btrim(${named})) or k.id::text like ${prefixOf(named)})
      and ${isIn("k.account_id", accountId)} and ${isIn("k.user_id", userId)}
    order by rank, k.id limit ${shownMax + 1}`.execute(kysely);
  return onlyOne("key", named, found.rows);
}

interface Candidate<Id> {
  readonly id: Id;
  /** Text after the id when an error lists several matches. */
  readonly label: string;
  readonly rank: number;
}

interface OfAccount<Id> {
  readonly id: Id;
  readonly accountId: AccountId;
}

/** Returns a pattern for `like`; null if the text cannot be the beginning of an id or is too short. */
function prefixOf(named: string): string | null {
  return named.length >= prefixLengthMin && /^[0-9a-f-]+$/.test(named) ? `${named}%` : null;
}

/** Returns the only row of the best rank. `rows` are sorted by rank. */
function onlyOne<Row extends Candidate<string>>(what: string, named: string, rows: readonly Row[]): Row {
  const meant = rows.filter(({ rank }) => rank === rows[0]!.rank);
  if (meant.length === 1) return meant[0]!;
  if (meant.length === 0) throw new RequestError("not_found", `there is no ${what} ${named}`);
  const shown = meant.slice(0, shownMax).map(({ id, label }) => `${id}${label}`);
  const ids = `${shown.join(", ")}${meant.length > shownMax ? ", …" : ""}`;
  throw new RequestError("conflict", `${named} matches several ${what}s: give one of these ids: ${ids}`);
}
