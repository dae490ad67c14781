/** Writes the usage table as CSV. It reads in steps from a database cursor, so that memory use stays small. */
import type { PoolClient } from "pg";
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import {
  usageQuery,
  viewRow,
  type TableRow,
  type UsagePart,
  type UsageQuery,
  type UsageRow,
  type UsageTableWish,
} from "./usage-table.ts";
import { csvLine } from "./csv.ts";
import { usageSums } from "./usage-columns.ts";

const rowsPerStep = 500;

export async function openUsageCsv(database: Database, clock: Clock, accountId: AccountId, wish: UsageTableWish) {
  const query = await usageQuery(database, clock, accountId, wish);
  const { by } = wish;
  return {
    fileName: `usage-${query.span.from}-${query.span.to}.csv`,
    /** Yields the lines from one snapshot. It holds a database connection until it ends, is returned, or `signal` aborts. */
    async *lines(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
      yield csvLine(headOf(by));
      for await (const rows of steps(database, query, signal))
        yield rows.map((row) => csvLine(cellsOf(by, viewRow(by, row)))).join("");
    },
  };
}

/** Yields rows in steps. The database ends the transaction if the next step is not read within 30 s. */
async function* steps(
  { pool, prompt }: Database,
  { text, order, values }: UsageQuery,
  signal: AbortSignal,
): AsyncGenerator<TableRow[], void, undefined> {
  const client: PoolClient = await pool.connect();
  let broken = false;
  const onError = () => void (broken = true);
  client.on("error", onError);
  let cancelled: Promise<unknown> | undefined;
  let pid: number | undefined;
  const cancel = () => {
    const text = "select pg_cancel_backend($1)";
    cancelled = pid === undefined ? undefined : prompt.query({ text, values: [pid] }).catch(() => {});
  };
  try {
    await client.query("begin read only");
    pid = (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
    signal.throwIfAborted();
    signal.addEventListener("abort", cancel);
    await client.query(`declare usage_rows no scroll cursor for ${text} select * from named order by ${order}`, [
      ...values,
    ]);
    for (;;) {
      const { rows } = await client.query<TableRow>(`fetch ${rowsPerStep} from usage_rows`);
      if (rows.length > 0) yield rows;
      if (rows.length < rowsPerStep) return;
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    // A late cancellation must not end the next statement on this connection.
    await cancelled;
    await client.query("rollback").catch(onError);
    client.off("error", onError);
    client.release(broken || cancelled !== undefined);
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

function headOf(by: readonly UsagePart[]): string[] {
  return [...by.flatMap((part) => Object.keys(partCells[part])), ...usageSums];
}

function cellsOf(by: readonly UsagePart[], row: UsageRow): (string | number | null)[] {
  const parts = by.flatMap((part) => Object.values(partCells[part]));
  return [...parts.map((cell) => cell(row)), ...usageSums.map((sum) => row[sum])];
}
