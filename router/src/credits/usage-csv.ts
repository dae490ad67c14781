/** The usage table as CSV, row by row from the database to the client: however long it is, little of it is in memory. */
import type { Pool, PoolClient } from "pg";
import type { Clock } from "@weiche/shared/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import {
  usageQuery,
  viewRow,
  type TableRow,
  type UsageQuery,
  type UsageRow,
  type UsageTableWish,
} from "./usage-table.ts";
import { csvLine } from "./csv.ts";
import type { UsagePart } from "./usage-parts.ts";

export interface UsageCsv {
  readonly fileName: string;
  /** Of one snapshot. It holds a connection to the database until it ends or is returned. */
  readonly lines: AsyncGenerator<string, void, undefined>;
}

export interface UsageExport {
  open(accountId: AccountId, wish: UsageTableWish): Promise<UsageCsv>;
}

/** Others need the database's connections, too. */
const openMax = 2;
const rowsPerStep = 500;

export function createUsageExport(database: Database, clock: Clock): UsageExport {
  let open = 0;

  async function* lines(query: UsageQuery, by: readonly UsagePart[]): AsyncGenerator<string, void, undefined> {
    if (open >= openMax) throw new ApiError("overloaded", "Other exports are running.", { retryAfterSeconds: 5 });
    open++;
    try {
      yield csvLine(headOf(by));
      for await (const rows of steps(database.pool, query))
        yield rows.map((row) => csvLine(cellsOf(by, viewRow(by, row)))).join("");
    } finally {
      open--;
    }
  }

  return {
    async open(accountId, wish) {
      const query = await usageQuery(database, clock, accountId, wish);
      return { fileName: `usage-${query.span.from}-${query.span.to}.csv`, lines: lines(query, wish.by) };
    },
  };
}

/** Whoever does not ask for the next step holds the transaction up, which the database ends after half a minute. */
async function* steps(pool: Pool, { text, order, values }: UsageQuery): AsyncGenerator<TableRow[], void, undefined> {
  const client: PoolClient = await pool.connect();
  let broken = false;
  const onError = () => void (broken = true);
  client.on("error", onError);
  try {
    await client.query("begin read only");
    await client.query(`declare usage_rows no scroll cursor for ${text} select * from named order by ${order}`, [
      ...values,
    ]);
    for (;;) {
      const { rows } = await client.query<TableRow>(`fetch ${rowsPerStep} from usage_rows`);
      if (rows.length > 0) yield rows;
      if (rows.length < rowsPerStep) return;
    }
  } finally {
    await client.query("rollback").catch(onError);
    client.off("error", onError);
    client.release(broken);
  }
}

const partCells: Readonly<Record<UsagePart, Readonly<Record<string, (row: UsageRow) => string | null>>>> = {
  day: { day: (row) => row.day! },
  model: { model: (row) => row.model! },
  key: {
    keyId: ({ key }) => key!.id,
    keyKind: ({ key }) => key!.kind,
    keyName: ({ key }) => key!.name,
    keyUser: ({ key }) => key!.userEmail,
  },
  user: { userId: ({ user }) => user!.id, user: ({ user }) => user!.email },
};
const sums = ["requests", "promptTokens", "completionTokens", "totalTokens", "credits"] as const;

function headOf(by: readonly UsagePart[]): string[] {
  return [...by.flatMap((part) => Object.keys(partCells[part])), ...sums];
}

function cellsOf(by: readonly UsagePart[], row: UsageRow): (string | number | null)[] {
  const parts = by.flatMap((part) => Object.values(partCells[part]));
  return [...parts.map((cell) => cell(row)), ...sums.map((sum) => row[sum])];
}
