/**
 * Reads an account's usage as a table by any of day, model, key and user: filtered, searched, sorted and in pages. Totals
 * cover all matching rows, from the same snapshot as the page.
 */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { formatCredits, millicredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId, KeyId, UserId } from "@weiche/shared/ids.ts";
import { instantText, type Database } from "../db/database.ts";
import { rowsMax } from "../rights/list-page.ts";
import { germanDay } from "../subscriptions/billing-period.ts";
import { periodOf, readSubscription } from "../subscriptions/subscription.ts";
import { usageColumns, usageSums, type UsageSum, type UsageSums } from "./usage-columns.ts";

export type UsagePart = "day" | "model" | "key" | "user";

export interface UsageTableWish {
  /** At least one part. */
  readonly by: readonly UsagePart[];
  /** German days, both inclusive. If undefined, the current billing period is used, or this month without a package. */
  readonly from?: string;
  readonly to?: string;
  readonly model?: string;
  readonly keyId?: KeyId;
  /** Only these users. */
  readonly userIds?: readonly UserId[];
  /** Matches this text in the name of the model, key or user. */
  readonly search?: string;
  /** If undefined, rows are sorted by day if they begin with the day, otherwise by credits, most first. */
  readonly sort?: UsageSum | UsagePart;
  readonly order?: "asc" | "desc";
}

export async function readUsageTable(
  database: Database,
  clock: Clock,
  accountId: AccountId,
  wish: UsageTableWish,
  { limit, offset }: { readonly limit: number; readonly offset: number } = { limit: rowsMax, offset: 0 },
) {
  const query = await usageQuery(database, clock, accountId, wish);
  const { rows } = await database.pool.query<Totals & (TableRow | { readonly requests: null })>(
    `${query.text}
     select t.*, p.* from (
       select count(*)::integer as "rowCount", jsonb_build_object(${totalsSql}) as totals from named) t
     left join lateral (select * from named order by ${query.order} limit $9 offset $10) p on true`,
    [...query.values, limit, offset],
  );
  const { rowCount, totals } = rows[0]!;
  return {
    by: wish.by,
    ...query.span,
    totals: viewSums(totals),
    /** Number of rows on all pages. */
    total: rowCount,
    rows: rows.flatMap((row) => (row.requests === null ? [] : [viewRow(wish.by, row)])),
  };
}

export type UsageQuery = Awaited<ReturnType<typeof usageQuery>>;

export async function usageQuery(database: Database, clock: Clock, accountId: AccountId, wish: UsageTableWish) {
  const nowMs = clock.now();
  const { from, to, period } = await spanOf(database, accountId, wish, nowMs);
  const { model = null, keyId = null, userIds = null, search = null } = wish;
  const periodStart = period ? instantText(period.startMs) : null;
  return {
    /** Ends with the table `named`. */
    text: namedSql(wish.by),
    order: orderOf(wish),
    values: [accountId, from, to, periodStart, model, keyId, userIds, search],
    /** `periodStart` and `periodEnd` are null if days were given or the account has no package. */
    span: { from, to, periodStart, periodEnd: period ? instantText(period.endMs) : null, asOf: instantText(nowMs) },
  };
}

/** Returns the days of the table: the requested days, or else the billing period with its days. */
async function spanOf({ kysely }: Database, accountId: AccountId, { from, to }: UsageTableWish, nowMs: number) {
  const { terms } = await readSubscription(kysely, accountId, nowMs);
  const period = from === undefined && to === undefined ? periodOf(terms, nowMs) : undefined;
  const today = germanDay(nowMs);
  return {
    from: from ?? (period ? germanDay(period.startMs) : `${(to ?? today).slice(0, 8)}01`),
    to: to ?? (period ? germanDay(period.endMs - 1) : today),
    period,
  };
}

/** A key's row also has its user, because a key belongs to one user. The playground's key has its user's id. */
const columnsOf: Readonly<Record<UsagePart, readonly string[]>> = {
  day: ["day"],
  model: ["model"],
  key: ["key_id", "user_id"],
  user: ["user_id"],
};

const sumsSql = usageColumns
  .map(({ name, adds }) => `sum(${adds.join(" + ")})::${name === "credits" ? "bigint" : "float8"} as "${name}"`)
  .join(", ");
const selectedSums = usageSums.map((name) => `s."${name}"`).join(", ");
const totalsSql = usageSums.map((name) => `'${name}', coalesce(sum("${name}"), 0)::text`).join(", ");

function namedSql(by: readonly UsagePart[]): string {
  const columns = [...new Set(by.flatMap((part) => columnsOf[part]))];
  const all = ["day", "model", "key_id", "user_id"];
  const selected = all.map((column) => (columns.includes(column) ? column : `null as ${column}`));
  return `
    with sums as (
      select ${selected.join(", ")}, ${sumsSql}
      from usage_days
      where account_id = $1 and requests > 0 and day between $2 and $3 and ($4::timestamptz is null or period_start = $4)
        and ($5::text is null or model = $5) and ($6::uuid is null or key_id = $6) and ($7::uuid[] is null or user_id = any($7))
      group by ${columns.join(", ")}
    ), named as (
      select s.day::text as day, s.model, s.key_id::text as "keyId", s.user_id::text as "userId", k.name as "keyName",
        k.last_four as "lastFour", case when u.deleted_at is null then u.email end as email,
        ${selectedSums}
      from sums s
      left join known_keys k on k.id = s.key_id::uuid
      left join users u on u.id = s.user_id::uuid
      where $8::text is null or strpos(lower(concat_ws(' ', s.model, k.name, u.email)), lower($8)) > 0
    )`;
}

const partOrder: Readonly<Partial<Record<UsageSum | UsagePart, string>>> = {
  day: "day",
  model: "model",
  key: 'lower("keyName")',
  user: "lower(email)",
};

/** Returns a total order, so that pages neither overlap nor skip rows. */
function orderOf({ by, sort = by[0] === "day" ? "day" : "credits", order }: UsageTableWish): string {
  const part = partOrder[sort];
  return `${part ?? `"${sort}"`} ${order ?? (part ? "asc" : "desc")} nulls last, day, credits desc, model, "keyId", "userId"`;
}

interface Totals {
  readonly rowCount: number;
  /** Numbers as texts, because JSON has no integers of this size. */
  readonly totals: UsageSums<string, string>;
}

/** A part that was not requested is null. */
export interface TableRow extends UsageSums<number, Millicredits> {
  readonly day: string | null;
  readonly model: string | null;
  readonly keyId: KeyId | null;
  readonly userId: UserId | null;
  readonly keyName: string | null;
  readonly lastFour: string | null;
  readonly email: string | null;
}

export type UsageRow = ReturnType<typeof viewRow>;

/** Converts a row for replies. A part that was not requested is undefined. */
export function viewRow(by: readonly UsagePart[], row: TableRow) {
  const { day, model, keyId, userId, keyName, lastFour, email } = row;
  const kind: "api" | "test-chat" = (keyId as string) === userId ? "test-chat" : "api";
  return {
    day: day ?? undefined,
    model: model ?? undefined,
    key: by.includes("key") ? { id: keyId!, kind, name: keyName, lastFour, userEmail: email } : undefined,
    user: by.includes("user") ? { id: userId!, email } : undefined,
    ...viewSums(row),
  };
}

function viewSums(sums: UsageSums<number | string, Millicredits | string>): UsageSums<number, string> {
  const view = (name: UsageSum) =>
    name === "credits" ? formatCredits(millicredits(BigInt(sums[name]))) : Number(sums[name]);
  return Object.fromEntries(usageSums.map((name) => [name, view(name)])) as UsageSums<number, string>;
}
