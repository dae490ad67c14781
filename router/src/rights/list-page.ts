/** Reads a page of a sorted list and the total number of matching rows. */
import { sql, type RawBuilder } from "kysely";
import type { Database } from "../db/database.ts";

export interface Page<Sort extends string> {
  readonly limit: number;
  readonly offset: number;
  readonly sort: Sort;
  readonly order: "asc" | "desc";
}

/** The limit that means "all rows". No account has more. */
export const rowsMax = 100_000;

/** Reads page and total in one statement. `order` and `tie` are SQL expressions over columns of `matching`; `tie` is unique. */
export async function readPage<Row>(
  { kysely }: Database,
  matching: RawBuilder<unknown>,
  { limit, offset, order: direction }: Pick<Page<string>, "limit" | "offset" | "order">,
  order: string,
  tie: string,
): Promise<{ readonly rows: readonly Row[]; readonly total: number }> {
  const ordered = sql.raw(`order by ${order} ${direction} nulls last, ${tie}`);
  const { rows } = await sql<{ readonly total: number; readonly isThere: true | null }>`
    with matching as materialized (${matching})
    select c.total, p.* from (select count(*)::integer as total from matching) c left join (
      select *, true as is_there from matching ${ordered} limit ${limit} offset ${offset}
    ) p on true
    ${ordered}`.execute(kysely);
  const found = rows.flatMap(({ isThere, total: _total, ...row }) => (isThere ? [row as Row] : []));
  return { rows: found, total: rows[0]!.total };
}

/** SQL condition: the SQL expression `text` contains the search term, in any case. It is true without a term. */
export function containing(search: string | undefined, text: string) {
  if (search === undefined || search.trim() === "") return sql<boolean>`true`;
  return sql<boolean>`position(lower(${search.trim()}) in lower(${sql.raw(text)})) > 0`;
}
