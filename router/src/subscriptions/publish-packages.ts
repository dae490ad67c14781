/**
 * Publishes the packages of the catalogue file: stores them and their terms, and adds notices about changed terms.
 * Effective terms of a booked package never change. New terms become effective when they are read, at the earliest, and
 * apply from an account's next billing period on.
 */
import { hash } from "node:crypto";
import { sql, type Kysely, type Transaction } from "kysely";
import type { PackageEntry, PackageTerms, PackageVersion } from "@weiche/shared/packages.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { inTransaction, instantText, instantValue, type Database } from "../db/database.ts";
import type { PackageName, Schema } from "../db/schema.ts";
import { effectiveTerms, viewTerms } from "./packages.ts";

/** Throws a `StartError` that names every package that cannot be published; then nothing is changed. */
export function publishPackages(database: Database, entries: readonly PackageEntry[], nowMs: number): Promise<void> {
  return inTransaction(database, async (transaction) => {
    const refused = await storePackages(transaction, entries, nowMs);
    if (refused.length > 0) throw new StartError(refused.map(({ message }) => message).join("; "));
  });
}

/** A package that cannot be published, and why. */
export interface RefusedPackage {
  readonly name: string;
  readonly message: string;
}

/** Returns the packages that `publishPackages` would refuse. Changes nothing. */
export async function refusedPackages(
  kysely: Kysely<Schema>,
  entries: readonly PackageEntry[],
  nowMs: number,
): Promise<readonly RefusedPackage[]> {
  const transaction = await kysely.startTransaction().execute();
  try {
    return await storePackages(transaction, entries, nowMs);
  } finally {
    await transaction.rollback().execute();
  }
}

async function storePackages(
  transaction: Transaction<Schema>,
  entries: readonly PackageEntry[],
  nowMs: number,
): Promise<readonly RefusedPackage[]> {
  // Two routers must not publish at the same time.
  await sql`lock table packages in share row exclusive mode`.execute(transaction);
  const refused = await goneButBooked(transaction, entries, nowMs);
  await transaction.updateTable("packages").set({ isListed: false }).execute();
  for (const [position, { name, trial, accounts }] of entries.entries()) {
    const row = { position, isListed: true, hasTrial: trial, onlyFor: accounts ? [...accounts] : null };
    await transaction
      .insertInto("packages")
      .values({ name, ...row })
      .onConflict((conflict) => conflict.column("name").doUpdateSet(row))
      .execute();
  }
  for (const entry of entries) {
    const message = await publishTerms(transaction, entry, nowMs);
    if (message !== undefined) refused.push({ name: entry.name, message });
  }
  return refused;
}

async function goneButBooked(
  transaction: Transaction<Schema>,
  entries: readonly PackageEntry[],
  nowMs: number,
): Promise<RefusedPackage[]> {
  const names = entries.map(({ name }) => name);
  const { rows } = await sql<{ name: PackageName; count: bigint }>`
    select package as name, count(distinct account_id) as count from subscriptions
    where (ended_at is null or ended_at > ${instantText(nowMs)}) and package <> all(${names}::text[])
    group by package order by package`.execute(transaction);
  return rows.map(({ name, count }) => {
    const byWhom =
      count === 1n ? "an account: list it until the account has" : `${count} accounts: list it until they have`;
    return { name, message: `${name} is not listed, but booked by ${byWhom} another package` };
  });
}

interface Stored extends PackageVersion {
  readonly effectiveFromMs: number;
}

/** Stores the versions of a package's terms. Returns a message if they cannot be published. */
async function publishTerms(
  transaction: Transaction<Schema>,
  { name, versions }: PackageEntry,
  nowMs: number,
): Promise<string | undefined> {
  const bookings = transaction.selectFrom("subscriptions").select("accountId").where("package", "=", name).limit(1);
  if (!(await bookings.executeTakeFirst())) {
    await transaction.deleteFrom("packageTerms").where("package", "=", name).execute();
    for (const version of versions) await insertTerms(transaction, name, version, version.validFromMs);
    return undefined;
  }
  const stored = await readStored(transaction, name);
  const current = stored.findLast(({ effectiveFromMs }) => effectiveFromMs <= nowMs) ?? stored[0]!;
  const listed = versions.findLast(({ validFromMs }) => validFromMs <= nowMs) ?? versions[0]!;
  const isSame = listed.validFromMs === current.validFromMs && areEqual(listed, current);
  if (!isSame && listed.validFromMs <= current.validFromMs)
    return `the terms of ${name} from ${instantText(current.validFromMs)} are booked and cannot change: restore them, and add terms with a later validFrom`;
  const isComing = ({ validFromMs }: PackageVersion) => validFromMs > current.validFromMs;
  const precedingOf = (list: readonly PackageVersion[], { validFromMs: ms }: PackageVersion) =>
    list.findLast(({ validFromMs }) => validFromMs < ms) ?? current;
  const [before, after] = [stored.filter(isComing), versions.filter(isComing)];
  const withdrawn = before.filter((old) => !after.some((version) => isEqualVersion(old, version)));
  const added = after.filter((version) => !before.some((old) => isEqualVersion(old, version)));
  for (const { validFromMs } of withdrawn)
    await transaction
      .deleteFrom("packageTerms")
      .where("package", "=", name)
      .where("validFrom", "=", instantValue(validFromMs))
      .execute();
  for (const version of added) {
    const effectiveFromMs = Math.max(version.validFromMs, nowMs);
    await insertTerms(transaction, name, version, effectiveFromMs);
    const replaced = withdrawn.find(({ validFromMs }) => validFromMs === version.validFromMs);
    const earlier = precedingOf(versions, version);
    if (areAlike(earlier, version) || (replaced && areAlike(replaced, version))) continue;
    const facts = { at: instantText(effectiveFromMs), from: viewTerms(earlier), to: viewTerms(version) };
    await tell(transaction, name, facts, nowMs);
  }
  for (const old of withdrawn) {
    if (areAlike(precedingOf(stored, old), old) || added.some(({ validFromMs }) => validFromMs === old.validFromMs))
      continue;
    const facts = { at: instantText(old.effectiveFromMs), from: viewTerms(current), to: null };
    await tell(transaction, name, facts, nowMs);
  }
  if (withdrawn.length + added.length > 0) await touchAccounts(transaction, name, nowMs);
  return undefined;
}

async function readStored(transaction: Transaction<Schema>, name: PackageName): Promise<readonly Stored[]> {
  const rows = transaction.selectFrom("packageTerms").selectAll().where("package", "=", name);
  return (await rows.orderBy("effectiveFrom").execute()).map((row) => ({
    validFromMs: row.validFrom.epochMilliseconds,
    ...effectiveTerms(row),
  }));
}

async function insertTerms(
  transaction: Transaction<Schema>,
  name: PackageName,
  { validFromMs, creditsPerMonth, ...terms }: PackageVersion,
  effectiveFromMs: number,
): Promise<void> {
  const instants = { validFrom: instantText(validFromMs), effectiveFrom: instantText(effectiveFromMs) };
  await transaction
    .insertInto("packageTerms")
    .values({ package: name, ...instants, credits: creditsPerMonth, ...terms })
    .execute();
}

/** Writes a notice for each account that has the package now or later. The same notice is written once. */
async function tell(transaction: Transaction<Schema>, name: PackageName, news: object, nowMs: number): Promise<void> {
  const facts = JSON.stringify({ package: name, ...news });
  const event = `${name} ${instantText(nowMs)} ${hash("sha256", facts).slice(0, 16)}`;
  await sql`
    insert into notices (account_id, kind, event, facts, created_at)
    select distinct account_id, 'package-terms', ${event}, ${facts}::jsonb, ${instantText(nowMs)}::timestamptz
    from subscriptions where package = ${name} and (ended_at is null or ended_at > ${instantText(nowMs)})
    on conflict do nothing`.execute(transaction);
}

/** Makes the key caches read the accounts of the package again, because their limits may change. */
async function touchAccounts(transaction: Transaction<Schema>, name: PackageName, nowMs: number): Promise<void> {
  await sql`
    update accounts set name = name where id in (select account_id from subscriptions
      where package = ${name} and (ended_at is null or ended_at > ${instantText(nowMs)}))`.execute(transaction);
}

function isEqualVersion(a: PackageVersion, b: PackageVersion): boolean {
  return a.validFromMs === b.validFromMs && areEqual(a, b);
}

function areEqual(a: PackageTerms, b: PackageTerms): boolean {
  return areAlike(a, b) && a.trialDays === b.trialDays;
}

/** Returns whether two terms are the same for accounts that have the package. Trials do not matter to these accounts. */
function areAlike(a: PackageTerms, b: PackageTerms): boolean {
  return JSON.stringify(viewTerms(a)) === JSON.stringify(viewTerms(b));
}
