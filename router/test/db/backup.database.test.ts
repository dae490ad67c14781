/** Backups of a real database, restored into another one: every table, in one snapshot, also from an older schema. */
import { PassThrough, Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClientConfig } from "pg";
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { lockDirectory } from "@weiche/shared/files/directory-lock.ts";
import { notRun } from "@weiche/shared/testing/needs.ts";
import { randomUUID } from "node:crypto";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dumpDatabase, leftOut } from "../../src/backup/dump.ts";
import { restoreInto } from "../../src/backup/restore-run.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { ownCredential } from "@weiche/shared/files/private-file.ts";
import { loadDatabaseUrl } from "../../src/config/config.ts";
import { openClient } from "../../src/db/client.ts";
import { migrateAlone } from "../../src/db/database.ts";
import { runningServer } from "../../src/db/embedded-server.ts";
import { rollUsageDays } from "../../src/usage/usage-days.ts";
import { testDatabases, temporaryFolder } from "./database-fixture.ts";

const server = await forThisFile(testDatabases());

const emptyDatabase = async (): Promise<ClientConfig> => ({ connectionString: await server.emptyDatabase() });

/** Makes a backup. `meanwhile` runs when the dump has begun and waits for its reader. */
async function backUp(connection: ClientConfig, meanwhile?: () => Promise<unknown>): Promise<Buffer> {
  const parts: Buffer[] = [];
  const sink = new PassThrough({ highWaterMark: 1 });
  const dumped = dumpDatabase(connection, sink, () => {});
  for await (const part of sink as AsyncIterable<Buffer>) if (parts.push(part) === 1) await meanwhile?.();
  await dumped;
  return Buffer.concat(parts);
}

async function* bytesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 5_000) yield bytes.subarray(at, at + 5_000);
}

/** Returns the rows of each table as text, without the tables that a backup omits. */
async function contentOf(connection: ClientConfig): Promise<Record<string, readonly string[]>> {
  await using client = await openClient(connection);
  const { rows: tables } = await client.query<{ name: string }>(
    "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1",
  );
  const content: Record<string, readonly string[]> = {};
  for (const { name } of tables.filter((table) => !leftOut.includes(table.name))) {
    const { rows } = await client.query<{ row: string }>(`select t::text as row from ${name} t order by 1`);
    content[name] = rows.map(({ row }) => row);
  }
  return content;
}

const accountId = randomUUID();
const userId = randomUUID();

/** Adds rows that are hard to restore: references in both directions, special characters, nulls, arrays. */
async function fillIn(connection: ClientConfig): Promise<void> {
  await using client = await openClient(connection);
  const [older, newer] = [randomUUID(), randomUUID()];
  await client.query("begin");
  await client.query("insert into accounts (id, name, created_at) values ($1, $2, now())", [
    accountId,
    'Tab\\ "Ö" \\N',
  ]);
  await client.query(
    "insert into users (id, account_id, email, role, allowed_models, created_at) values ($1, $2, 'a@example.com', 'owner', $3, now())",
    [userId, accountId, ["a b", 'c"d', "\\"]],
  );
  const key = `insert into api_keys (id, account_id, user_id, hash, last_four, name, revoked_at, regenerated_as, created_at)
    values ($1, $2, $3, $4, 'abcd', $5, $6, $7, now())`;
  await client.query(key, [older, accountId, userId, "0".repeat(64), "older", new Date(), newer]);
  await client.query(key, [newer, accountId, userId, "1".repeat(64), "newer", null, null]);
  await client.query("insert into audit_heads values ($1, 1, $2)", [accountId, "2".repeat(64)]);
  await client.query(
    "insert into audit_log values ($1, 1, now(), 'operator', 'admin.sock', 'account.create', $2, 'done', '{}', $3)",
    [accountId, `account ${accountId}`, "2".repeat(64)],
  );
  await client.query("commit");
}

test("a restore brings back every table unchanged except omitted ones, and the ledger gets a new identity [G4]", async () => {
  const database = await server.newDatabase();
  await fillIn(database.connection);
  await rollUsageDays(database.pool, Date.now(), 400);
  const before = await contentOf(database.connection);
  const target = await emptyDatabase();
  const { header } = await restoreBackup(bytesOf(await backUp(database.connection)), target, () => {});
  await migrateAlone(target);
  expect(await contentOf(target)).toEqual(before);
  expect(header.tables.map(({ name }) => name).toSorted()).toEqual(Object.keys(before));
  const ledgerOf = async (connection: ClientConfig) => {
    await using client = await openClient(connection);
    return (await client.query<{ id: string }>("select id from ledger_identity")).rows[0]!.id;
  };
  expect(await ledgerOf(target)).not.toBe(await ledgerOf(database.connection));
  // The tables' triggers are enabled again.
  await using client = await openClient(target);
  await expect(client.query("delete from audit_log")).rejects.toThrow("only added to");
  const { rows: changes } = await client.query<{ number: string }>("select number from change_counter");
  await client.query("update accounts set name = 'Other'");
  expect((await client.query<{ number: string }>("select number from change_counter")).rows).not.toEqual(changes);
});

test("a backup of an older schema is migrated to the current schema [G4]", async () => {
  const old = await emptyDatabase();
  await migrateAlone(old, "0012-usage-refused");
  await fillIn(old);
  const bytes = await backUp(old);
  const target = await emptyDatabase();
  await restoreBackup(bytesOf(bytes), target, () => {});
  await migrateAlone(target);
  await using client = await openClient(target);
  expect((await client.query("select id from api_keys")).rows).toHaveLength(2);
  expect((await client.query("select 1 from grant_secret")).rows).toHaveLength(1);
});

test("a backup is one snapshot despite concurrent writes, and no partition is dropped meanwhile [G4]", async () => {
  const database = await server.newDatabase();
  await fillIn(database.connection);
  const longAgo = Date.UTC(2020, 0, 1);
  await rollUsageDays(database.pool, longAgo, 400);
  let writing = true;
  const writer = (async () => {
    while (writing) {
      // Key and use are written in one transaction, so a backup has both or none.
      const id = randomUUID();
      const client = await database.pool.connect();
      await client.query("begin");
      await client.query("insert into key_uses values ($1, now())", [id]);
      await client.query(
        `insert into api_keys (id, account_id, user_id, hash, last_four, name, created_at)
         values ($1, $2, $3, $4, 'abcd', 'new', now())`,
        [id, accountId, userId, id.replaceAll("-", "").padEnd(64, "0")],
      );
      await client.query("commit");
      client.release();
      await sleep(1);
    }
  })();
  let dropped: number | undefined;
  const bytes = await backUp(database.connection, async () => {
    dropped = await rollUsageDays(database.pool, Date.now(), 400);
    await sleep(50); // the writer continues
  });
  writing = false;
  await writer;
  expect(dropped).toBe(0);
  expect(await rollUsageDays(database.pool, Date.now(), 400)).toBeGreaterThan(0);
  const target = await emptyDatabase();
  await restoreBackup(bytesOf(bytes), target, () => {});
  await using client = await openClient(target);
  const { rows } = await client.query<{ keys: string; uses: string }>(
    "select (select count(*) from api_keys where name = 'new') as keys, (select count(*) from key_uses) as uses",
  );
  expect(rows[0]!.keys).toBe(rows[0]!.uses);
});

test("a damaged backup or one of a newer version restores nothing", async () => {
  const database = await server.newDatabase();
  await fillIn(database.connection);
  const bytes = await backUp(database.connection);
  const target = await emptyDatabase();
  await expect(restoreBackup(bytesOf(bytes.subarray(0, -10)), target, () => {})).rejects.toThrow("incomplete");
  const later = Buffer.from(bytes.toString("latin1").replace('"0016-ledger"', '"9999-later"'), "latin1");
  await expect(restoreBackup(bytesOf(later), target, () => {})).rejects.toThrow("install that version first");
  await using client = await openClient(target);
  expect((await client.query("select 1 from accounts")).rows).toEqual([]);
  await restoreBackup(bytesOf(bytes), target, () => {});
  await expect(restoreBackup(bytesOf(bytes), target, () => {})).rejects.toThrow("the database has accounts");
});

const needsRoot = process.getuid?.() === 0 ? {} : notRun("it needs root");

test(
  "a restore is refused if another process holds the data directory or another user owns it [G4]",
  needsRoot,
  async () => {
    using folder = temporaryFolder();
    const stateDir = join(folder.path, "router");
    using _held = lockDirectory(stateDir); // by root
    const nobody = 65534;
    for (const path of [folder.path, stateDir, join(stateDir, "lock")]) chownSync(path, nobody, nobody);
    const said = restoreAs(nobody, folder.path);
    expect(said).toContain(`another process (pid ${process.pid}) uses the data directory ${stateDir}`);
    const asRoot = restoreInto(Readable.from([]), { stateDir }, [], () => {});
    await expect(asRoot).rejects.toThrow(`${stateDir} belongs to user ${nobody}: run this as that user`);
    chownSync(join(stateDir, "lock"), 0, 0);
    chmodSync(join(stateDir, "lock"), 0o600);
    expect(restoreAs(nobody, folder.path)).toContain(`cannot lock the data directory ${stateDir}: `);
    expect(readdirSync(stateDir)).not.toContain("database");
  },
);

/** Runs `weiche restore` as this user. It must exit with 1. Returns its message. */
function restoreAs(uid: number, dataDir: string): string {
  const weiche = join(import.meta.dirname, "../../bin/weiche.js");
  const { status, stderr } = spawnSync(process.execPath, [weiche, "--data-dir", dataDir, "restore", "-"], {
    ...{ uid, gid: uid },
    encoding: "utf8",
    stdio: ["ignore", "ignore", "pipe"],
  });
  expect(status).toBe(1);
  return stderr;
}

test("the running server is found by its files, also from a sandbox that does not see its process [G4]", async () => {
  const { host, password } = server.connection;
  const own = readFileSync(join(host!, "cluster/postmaster.pid"), "utf8");
  using folder = temporaryFolder();
  const cluster = join(folder.path, "database/cluster");
  mkdirSync(cluster, { recursive: true });
  writeFileSync(join(folder.path, "database/password"), password as string);
  const toldBy = (pidFile: string) => {
    writeFileSync(join(cluster, "postmaster.pid"), pidFile);
    return runningServer(folder.path);
  };
  expect(await toldBy(own)).toMatchObject({ host, database: "weiche" });
  await expect(toldBy(own.replace(`\n${host}\n`, `\n${host}-gone\n`))).rejects.toThrow(
    /does not answer .*: start the router first/,
  );
  await expect(toldBy(own.replace("ready", "stopping"))).rejects.toThrow("does not run: start the router first");
});

test("backup and restore read no password but the database's", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "router.yaml");
  const other = "passwordFile: /nowhere";
  const smtp = `smtp: { url: "smtps://user@mail.example", ${other}, from: "Weiche <portal@example>" }`;
  writeFileSync(join(folder.path, "password"), "secret\n", { mode: 0o600 });
  const database = "database: { url: postgres://weiche@db.example/weiche, passwordFile: password }";
  writeFileSync(file, `catalogue: none.yaml\n${smtp}\nops: { tokenFile: /nowhere }\n${database}\n`);
  expect(loadDatabaseUrl(file, (secret) => secret)).toBe("postgres://weiche:secret@db.example/weiche");
  writeFileSync(file, `catalogue: none.yaml\n${smtp}\n`);
  expect(loadDatabaseUrl(file, (secret) => secret)).toBeUndefined();
});

test("a path to a password that systemd gives to the router's unit is read from this unit's credentials [G4]", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "router.yaml");
  const passwordFile = "/run/credentials/weiche-router.service/database-password";
  const database = `database: { url: postgres://weiche@db.example/weiche, passwordFile: ${passwordFile} }`;
  writeFileSync(file, `catalogue: none.yaml\n${database}\n`);
  const env = { CREDENTIALS_DIRECTORY: folder.path };
  const ownIn = (variables: NodeJS.ProcessEnv) => (secret: string) => ownCredential(secret, variables);
  const refusal = `${passwordFile} is only for weiche-router.service: give LoadCredential=database-password:FILE`;
  for (const without of [{}, env]) expect(() => loadDatabaseUrl(file, ownIn(without))).toThrow(refusal);
  writeFileSync(join(folder.path, "database-password"), "secret\n", { mode: 0o400 });
  expect(loadDatabaseUrl(file, ownIn(env))).toBe("postgres://weiche:secret@db.example/weiche");
});
