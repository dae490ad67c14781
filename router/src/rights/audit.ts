/** Verifies the hash chains of the audit log, and formats its entries. */
import type { Selectable, Transaction } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { chainStart, hashEntry } from "./audit-log.ts";

export interface AuditView {
  readonly number: number;
  readonly at: string;
  readonly actor: string;
  readonly source: string;
  readonly action: string;
  readonly object: string;
  readonly result: string;
  readonly details: object;
}

/** The first invalid entry of a chain. */
export interface BrokenChain {
  readonly accountId: AccountId;
  readonly number: number;
  readonly why: "changed" | "missing" | "cut off";
}

export interface AuditCheck {
  readonly chains: number;
  readonly entries: number;
  readonly broken: readonly BrokenChain[];
}

const pageMax = 1_000;

/** Verifies one account's chain, or all. */
export async function verifyAudit({ kysely }: Pick<Database, "kysely">, accountId?: AccountId): Promise<AuditCheck> {
  const accounts =
    accountId === undefined
      ? (await kysely.selectFrom("accounts").select("id").orderBy("id").execute()).map(({ id }) => id)
      : [accountId];
  // Each in one snapshot, since entries are added and removed concurrently.
  const snapshot = kysely.transaction().setIsolationLevel("repeatable read").setAccessMode("read only");
  let check: AuditCheck = { chains: accounts.length, entries: 0, broken: [] };
  for (const id of accounts) {
    const { entries, broken } = await snapshot.execute((transaction) => verifyChain(transaction, id));
    check = { ...check, entries: check.entries + entries, broken: [...check.broken, ...broken] };
  }
  return check;
}

async function verifyChain(transaction: Transaction<Schema>, accountId: AccountId) {
  const heads = transaction.selectFrom("auditHeads").selectAll().where("accountId", "=", accountId);
  const checkpoints = transaction.selectFrom("auditCheckpoints").selectAll().where("accountId", "=", accountId);
  const [head, checkpoint] = [await heads.executeTakeFirst(), await checkpoints.executeTakeFirst()];
  const removed = checkpoint?.number ?? 0n;
  let [number, last] = [removed, checkpoint?.hash ?? chainStart];
  const broken = (why: BrokenChain["why"]) => ({
    entries: Number(number - removed),
    broken: [{ accountId, number: Number(number) + 1, why }],
  });
  if (number === head?.number && last !== head.hash) return broken("changed");
  for (;;) {
    const page = await transaction
      .selectFrom("auditLog")
      .selectAll()
      .where("accountId", "=", accountId)
      .where("number", ">", number)
      .orderBy("number")
      .limit(pageMax)
      .execute();
    for (const entry of page) {
      if (entry.number !== number + 1n) return broken("missing");
      if (hashEntry(last, entry) !== entry.hash) return broken("changed");
      [number, last] = [entry.number, entry.hash];
      if (number === head?.number && last !== head.hash) return broken("changed");
    }
    if (page.length < pageMax) break;
  }
  return number < (head?.number ?? 0n) ? broken("cut off") : { entries: Number(number - removed), broken: [] };
}

export function viewEntry(entry: Selectable<Schema["auditLog"]>): AuditView {
  const { number, at, actor, source, action, object, result, details } = entry;
  return {
    number: Number(number),
    at: at.toString(),
    actor,
    source,
    action,
    object,
    result,
    details: JSON.parse(details) as object,
  };
}
