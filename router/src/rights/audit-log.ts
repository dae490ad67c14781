/**
 * Writes the audit log, one hash chain per account: who did what to which object, when, from where, with what result.
 * An entry is written in the transaction of its change; a refusal is written after the rollback. Entries contain no key,
 * password, e-mail address or content.
 */
import { hash } from "node:crypto";
import { sql, type Transaction } from "kysely";
import { formatCredits, type Millicredits } from "@weiche/shared/credits.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { inTransaction, instantText } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import type { AuditEntry } from "./audit-entry.ts";
import { operator, type ActingContext } from "./accounts-context.ts";
import { RequestError } from "./request-error.ts";

type AuditAction =
  | `account.${"create" | "rename" | "billing" | "block" | "unblock" | "delete"}`
  | `user.${"create" | "update" | "block" | "unblock" | "delete"}`
  | `user.${"invite" | "withdraw" | "join" | "change-password" | "reset-link" | "reset-password" | "totp-on" | "totp-off"}`
  | `session.${"start" | "end" | "end-all"}`
  | `key.${"create" | "update" | "regenerate" | "revoke"}`
  | `subscription.${"trial" | "order" | "upgrade" | "downgrade" | "cancel" | "withdraw"}`;

export interface Deed {
  readonly action: AuditAction;
  /** The object of the request. */
  readonly on: Subject;
  /** The requested values, without undefined fields. A bigint is in millicredits and written as credits. */
  readonly details?: object;
}

export interface Subject {
  readonly kind: "account" | "user" | "key";
  readonly id: string;
}

/** A person may make this many changes at once, then one a second. This bounds the growth of everything that people create. */
export const changesBurst = 1_000;

/** The previous hash of a chain's first entry. */
export const chainStart = "0".repeat(64);

/** Runs `work` and logs it in one transaction. `madeBy` returns the object that `work` made, to log instead of `deed.on`. */
export async function audited<T>(
  context: ActingContext,
  deed: Deed,
  work: (transaction: Transaction<Schema>) => Promise<T>,
  madeBy?: (result: T) => Subject,
): Promise<T> {
  const { database } = context;
  try {
    const { result, entry } = await inTransaction(database, async (transaction) => {
      await countChange(context, transaction, deed);
      const done = await work(transaction);
      return { result: done, entry: await append(context, transaction, deed, madeBy?.(done) ?? deed.on, "done") };
    });
    if (entry) context.audits?.audited(entry);
    return result;
  } catch (error) {
    // `not_found` is not logged: the object does not exist, or belongs to an account whose log the actor must not write.
    if (error instanceof RequestError && error.kind !== "not_found" && !(error instanceof TooManyChanges)) {
      const refused = `refused: ${error.kind}`;
      const entry = await inTransaction(database, async (transaction) => {
        await countChange(context, transaction, deed);
        return append(context, transaction, deed, deed.on, refused);
      });
      if (entry) context.audits?.audited(entry);
    }
    throw error;
  }
}

/** Refuses a change because the person changes too much at once. It is not logged, so that the log does not grow. */
class TooManyChanges extends RequestError {
  constructor() {
    super("too_many_attempts", "too many changes: make at most one change a second", { retryAfterSeconds: 1 });
  }
}

/** Returns the subject in `attempts` under which an actor's changes are counted. */
export function changesOf(actor: string): string {
  return hash("sha256", `changes ${actor}`);
}

/** Counts a change. Sign-ins have their own limits, and ending sessions must always be possible. */
async function countChange(
  { clock, origin = operator }: ActingContext,
  transaction: Transaction<Schema>,
  { action }: Deed,
): Promise<void> {
  if (origin.actor === operator.actor || action.startsWith("session.")) return;
  const now = instantText(clock.now());
  const { rows } = await sql`
    insert into attempts as a (subject, level, at) values (${changesOf(origin.actor)}, 1, ${now})
    on conflict (subject) do update set at = greatest(a.at, excluded.at),
      level = greatest(0, a.level - greatest(0, extract(epoch from excluded.at - a.at))) + 1
    where greatest(0, a.level - greatest(0, extract(epoch from excluded.at - a.at))) + 1 <= ${changesBurst}
    returning 1`.execute(transaction);
  if (rows.length === 0) throw new TooManyChanges();
}

export function hashEntry(before: string, entry: AuditEntry): string {
  const { accountId, number, at, actor, source, action, object, result, details } = entry;
  const fields = [before, accountId, String(number), at.epochMilliseconds, actor, source, action, object, result];
  return hash("sha256", JSON.stringify([...fields, details]));
}

/** Call it last in a transaction: it locks the chain's head until the commit. Returns undefined without an account. */
async function append(
  { clock, origin = operator }: ActingContext,
  transaction: Transaction<Schema>,
  deed: Deed,
  object: Subject,
  result: string,
): Promise<AuditEntry | undefined> {
  const accountId = await accountOf(transaction, object);
  if (accountId === undefined) return undefined;
  const head = await transaction
    .insertInto("auditHeads")
    .values({ accountId, number: 0n, hash: chainStart })
    .onConflict((conflict) =>
      conflict.column("accountId").doUpdateSet((eb) => ({ number: eb.ref("auditHeads.number") })),
    )
    .returning(["number", "hash"])
    .executeTakeFirstOrThrow();
  const nowMs = clock.now();
  const entry: AuditEntry = {
    accountId,
    number: head.number + 1n,
    at: Temporal.Instant.fromEpochMilliseconds(nowMs),
    ...origin,
    action: deed.action,
    object: `${object.kind} ${object.id}`,
    result,
    details: detailsText(deed.details ?? {}),
  };
  const ownHash = hashEntry(head.hash, entry);
  await transaction
    .insertInto("auditLog")
    .values({ ...entry, at: instantText(nowMs), hash: ownHash })
    .execute();
  await transaction
    .updateTable("auditHeads")
    .set({ number: entry.number, hash: ownHash })
    .where("accountId", "=", accountId)
    .execute();
  return entry;
}

async function accountOf(transaction: Transaction<Schema>, { kind, id }: Subject): Promise<AccountId | undefined> {
  const [table, column] = {
    account: ["accounts", "id"],
    user: ["users", "account_id"],
    key: ["api_keys", "account_id"],
  }[kind];
  const select = sql<{ id: AccountId }>`select ${sql.ref(column!)} as id from ${sql.table(table!)} where id = ${id}`;
  return (await select.execute(transaction)).rows[0]?.id;
}

/** Writes details as JSON and masks API keys, because people paste keys into any field. */
function detailsText(details: object): string {
  const text = JSON.stringify(details, (_name, value: unknown) =>
    typeof value === "bigint" ? formatCredits(value as Millicredits) : value,
  );
  return text.replace(/sk-[\w-]{16,}/g, "sk-…");
}
