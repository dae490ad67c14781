/** Verifies the hash chains of the audit log. */
import type { Transaction } from "kysely";
import type { AccountId } from "@weiche/shared/ids.ts";
import type { Database } from "../db/database.ts";
import type { Schema } from "../db/schema.ts";
import { chainStart, hashEntry } from "./audit-log.ts";

const pageMax = 1_000;

/** Verifies one account's chain, or all. Counts valid entries and finds the first invalid entry of each broken chain. */
export async function verifyAudit({ kysely }: Database, accountId?: AccountId) {
  const accounts =
    accountId === undefined
      ? (await kysely.selectFrom("accounts").select("id").orderBy("id").execute()).map(({ id }) => id)
      : [accountId];
  // Each chain is read in one snapshot, because entries are added and removed concurrently.
  const snapshot = kysely.transaction().setIsolationLevel("repeatable read").setAccessMode("read only");
  const checks: Awaited<ReturnType<typeof verifyChain>>[] = [];
  for (const id of accounts) checks.push(await snapshot.execute((transaction) => verifyChain(transaction, id)));
  return {
    chains: accounts.length,
    entries: checks.reduce((sum, { entries }) => sum + entries, 0),
    broken: checks.flatMap(({ broken }) => broken),
  };
}

async function verifyChain(transaction: Transaction<Schema>, accountId: AccountId) {
  const heads = transaction.selectFrom("auditHeads").selectAll().where("accountId", "=", accountId);
  const checkpoints = transaction.selectFrom("auditCheckpoints").selectAll().where("accountId", "=", accountId);
  const [head, checkpoint] = [await heads.executeTakeFirst(), await checkpoints.executeTakeFirst()];
  const removed = checkpoint?.number ?? 0n;
  let [number, last] = [removed, checkpoint?.hash ?? chainStart];
  const broken = (why: "changed" | "missing" | "cut off") => ({
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
