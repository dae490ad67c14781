/** Finds the account that an operator means by its id, the beginning of its id, or its name. */
import { sql } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import { Refused } from "../rights/refused.ts";

const prefixLengthMin = 4;
const shownMax = 5;

/**
 * The whole id comes first, then a name in any case, then the beginning of an id. Throws `Refused`: there is none, or it
 * may be one of several.
 */
export async function accountNamed({ kysely }: Pick<Database, "kysely">, named: string): Promise<AccountId> {
  const prefix = named.length >= prefixLengthMin && /^[0-9a-f-]+$/.test(named) ? `${named}%` : null;
  const { rows } = await sql<{ id: AccountId; rank: number }>`
    select id, case when id::text = ${named} then 1 when lower(name) = lower(btrim(${named})) then 2 else 3 end as rank
    from accounts
    where id::text = ${named} or (lower(name) = lower(btrim(${named})) and deleted_at is null) or id::text like ${prefix}
    order by rank, id limit ${shownMax + 1}`.execute(kysely);
  const meant = rows.filter(({ rank }) => rank === rows[0]!.rank);
  if (meant.length === 1) return meant[0]!.id;
  if (meant.length === 0) throw new Refused("not_found", `there is no account ${named}`);
  const shown = meant.slice(0, shownMax).map(({ id }) => id);
  const ids = `${shown.join(", ")}${meant.length > shownMax ? ", …" : ""}`;
  throw new Refused("conflict", `several accounts are meant by ${named}: give the id of one of ${ids}`);
}
