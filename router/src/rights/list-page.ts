/** Lists as people look things up in them: a page of what matches, in an order of theirs, and how much there is of it. */
import { sql, type RawBuilder } from "kysely";
import type { Database } from "../db/database.ts";

export interface Page<Sort extends string> {
  readonly limit: number;
  readonly offset: number;
  readonly sort: Sort;
  readonly order: "asc" | "desc";
}

/** More than any account has: all of them. */
export const rowsMax = 100_000;

/** Both in one statement. `matching` is read once; `order` and `tie`, which no two rows share, are columns of it in SQL. */
export async function readPage<Row>(
  { kysely }: Pick<Database, "kysely">,
  matching: RawBuilder<unknown>,
  { limit, offset, order: direction }: Pick<Page<string>, "limit" | "offset" | "order">,
  order: string,
  tie: string,
): Promise<{ readonly rows: readonly Row[]; readonly total: number }> {
  const ordered = sql.raw(`order by ${order} ${direction} nulls last, ${tie}`);
  const { rows } = await sql<Row & { readonly total: number; readonly isThere: true | null }>`
    with matching as materialized (${matching})
    select c.total, p.* from (select count(*)::integer as total from matching) c left join (
      select *, true as is_there from matching ${ordered} limit ${limit} offset ${offset}
    ) p on true
    ${ordered}`.execute(kysely);
  return { rows: rows.filter(({ isThere }) => isThere), total: rows[0]!.total };
}

/** Whether an SQL text holds what was searched, in any case. */
export function containing(search: string | undefined, text: string) {
  if (search === undefined || search.trim() === "") return sql<boolean>`true`;
  return sql<boolean>`position(lower(${search.trim()}) in lower(${sql.raw(text)})) > 0`;
}
