import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sql } from "kysely";
import type { PoolClient } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { openClient } from "../../src/db/client.ts";
import { inTransaction, openDatabase, type Database } from "../../src/db/database.ts";
import { isUnavailable } from "../../src/db/failures.ts";
import { startEmbeddedServer } from "../../src/db/embedded-server.ts";
import { isPostmaster, readPostmaster } from "../../src/db/postmaster.ts";
import { silent, temporaryFolder, until, urlOf } from "./database-fixture.ts";
import { clusterOf, foreignServer, killed, processGroupOf, routerIn } from "./embedded-processes.ts";

const isRoot = process.getuid?.() === 0;
let open = new AsyncDisposableStack();
/** A folder with an existing database. */
let used: string;
const usedFolder = temporaryFolder();
beforeAll(async () => {
  used = usedFolder.path;
  await (await openIn(used))[Symbol.asyncDispose]();
});
afterAll(() => usedFolder[Symbol.dispose]());
afterEach(async () => {
  await open.disposeAsync();
  open = new AsyncDisposableStack();
});

function stateFolder(): string {
  return open.use(temporaryFolder()).path;
}

async function openIn(stateDir: string): Promise<Database> {
  return openDatabase({ stateDir }, systemClock, silent);
}

test("the first start creates a database with fsync on, behind a socket in a private folder", async () => {
  const stateDir = stateFolder();
  const first = await openIn(stateDir);
  const { rows } = await first.pool
    .query(`select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
    current_setting('server_encoding') as encoding, current_setting('listen_addresses') as addresses`);
  expect(rows).toEqual([{ fsync: "on", pages: "on", encoding: "UTF8", addresses: "" }]);
  expect(first.connection.host).toBe(join(stateDir, "database"));
  expect(statSync(join(stateDir, "database")).mode & 0o077).toBe(0);
  await first.pool.query("create table kept as select 7 as seven");
  const { pid } = readPostmaster(clusterOf(stateDir))!;
  expect(processGroupOf(pid)).toBe(pid); // a terminal's signals go only to the router's group
  await first[Symbol.asyncDispose]();
  expect(isPostmaster(pid, clusterOf(stateDir))).toBe(false);

  await using second = await openIn(stateDir);
  expect((await second.pool.query("select seven from kept")).rows).toEqual([{ seven: 7 }]);
});

test("integers, days and instants are read exactly", async () => {
  await using database = await openIn(used);
  const { rows } = await database.pool.query(
    "select 9007199254740993 as big, date '2026-11-21' as day, timestamptz '2026-11-21 12:00:00.123+01' as at",
  );
  expect(rows).toEqual([
    { big: 9007199254740993n, day: "2026-11-21", at: Temporal.Instant.from("2026-11-21T11:00:00.123Z") },
  ]);
});

test("with a long state folder, the server listens on loopback with a password", async () => {
  const stateDir = join(stateFolder(), "x".repeat(90));
  mkdirSync(stateDir);
  await using database = await openIn(stateDir);
  expect(database.connection.host).toBe("127.0.0.1");
  const guess = openClient({ ...database.connection, password: "guess" });
  await expect(guess).rejects.toThrow("password authentication failed");
});

/** These tests share a folder; each leaves it without a server. */
describe("with an existing database", () => {
  let pretended = 0;

  test("a server that a killed router left behind is adopted", async () => {
    const { child } = await routerIn(open, used);
    const { pid } = readPostmaster(clusterOf(used))!;
    await killed(child);
    expect(isPostmaster(pid, clusterOf(used))).toBe(true);

    const server = await startEmbeddedServer(used, systemClock, silent);
    expect(server.adopted).toBe(true);
    expect(server.pid()).toBe(pid);
    await server[Symbol.asyncDispose]();
    expect(isPostmaster(pid, clusterOf(used))).toBe(false);
  });

  test("a killed server is started again with all commits [C4]", async () => {
    let restarts = 0;
    const events = { ...silent, databaseRestarted: () => void restarts++ };
    await using database = await openDatabase({ stateDir: used }, systemClock, events);
    await database.pool.query("create table kept as select 7 as seven");
    process.kill(readPostmaster(clusterOf(used))!.pid, "SIGKILL");
    await until("the server runs again", 20_000, () => restarts === 1);
    expect((await database.pool.query("select seven from kept")).rows).toEqual([{ seven: 7 }]);
  });

  test.each([
    ["is ended by an operator", "during a statement"],
    ["is ended by an operator", "between two statements"],
    ["ends with its server", "during a statement"],
    ["ends with its server", "between two statements"],
  ])("a transaction whose connection %s %s fails as unavailable, and nothing else fails", async (how, when) => {
    const restarted = Promise.withResolvers<void>();
    const events = { ...silent, databaseRestarted: () => restarted.resolve() };
    await using database = await openDatabase({ stateDir: used }, systemClock, events);
    const inUse = Promise.withResolvers<PoolClient>();
    const goOn = Promise.withResolvers<void>();
    database.pool.once("acquire", inUse.resolve);
    const work = inTransaction(database, async (transaction) => {
      await sql`select 1`.execute(transaction);
      if (when === "between two statements") await goOn.promise;
      await sql`select pg_sleep(60)`.execute(transaction);
    }).catch((error: unknown) => error);
    const client = await inUse.promise;
    const ended = new Promise<void>((resolve) => client.once("end", resolve));
    const state = when === "during a statement" ? "active" : "idle in transaction";
    const victim = `from pg_stat_activity where application_name = 'weiche' and pid <> pg_backend_pid() and state = '${state}'`;
    const found = async () => (await database.pool.query(`select pid ${victim}`)).rowCount === 1;
    await until("the transaction is there", 5_000, found);
    if (how === "is ended by an operator") await database.pool.query(`select pg_terminate_backend(pid) ${victim}`);
    else process.kill(readPostmaster(clusterOf(used))!.pid, "SIGKILL");
    await ended;
    goOn.resolve();
    expect(isUnavailable(await work)).toBe(true);
    if (how === "ends with its server") await restarted.promise;
    expect((await database.pool.query("select 7 as seven")).rows).toEqual([{ seven: 7 }]);
  });

  test.each([
    ["another program has its pid", (pid: number) => `${pid}\n${clusterOf(used)}\n1\n5432\n\n\n\nready\n`],
    ["its pid file is empty", () => ""],
  ])("a killed server is started again although %s", async (_what, text) => {
    const { uid, gid } = statSync(clusterOf(used));
    const other = spawn("sleep", ["60"], isRoot ? { uid, gid } : {});
    open.defer(() => void other.kill("SIGKILL"));
    const file = join(clusterOf(used), "postmaster.pid");
    writeFileSync(file, text(other.pid!));
    chownSync(file, uid, gid);
    await using database = await openIn(used);
    expect((await database.pool.query("select 7 as seven")).rows).toEqual([{ seven: 7 }]);
  });

  test("a server with fsync off is refused, whether named by a URL or left behind in the folder [G1]", async () => {
    const foreign = await foreignServer(open, used, "-c", "fsync=off");
    const opening = openDatabase({ stateDir: used, databaseUrl: urlOf(foreign, "weiche") }, systemClock, silent);
    await expect(opening).rejects.toThrow(StartError);
    await expect(opening).rejects.toThrow(/fsync off/);
    await expect(openIn(used)).rejects.toThrow(/fsync off/);
  });

  /** A real server with a changed setting: a schema before the system's overrides the functions that return it. */
  async function pretending(setting: string, value: string): Promise<string> {
    const server = open.use(await startEmbeddedServer(used, systemClock, silent));
    const name = `pretending_${++pretended}`;
    await using admin = await openClient(server.connection);
    await admin.query(`create database ${name}`);
    await admin.query(`alter database ${name} set search_path = pretended, pg_catalog, public`);
    await using client = await openClient({ connectionString: urlOf(server, name) });
    await client.query(`create schema pretended;
      create function pretended.pg_is_in_recovery() returns boolean language sql as
        $$ select '${setting}' = 'standby' $$;
      create function pretended.current_setting(text) returns text language sql as
        $$ select case $1 when '${setting}' then '${value}' else pg_catalog.current_setting($1) end $$`);
    return urlOf(server, name);
  }

  test.each([
    ["server_version_num", "90624", "the database is PostgreSQL 9: at least 15 is needed"],
    ["server_version_num", "140019", "the database is PostgreSQL 14: at least 15 is needed"],
    ["server_encoding", "SQL_ASCII", "the database has the encoding SQL_ASCII: UTF8 is needed"],
    ["standby", "", "the database is a standby: name the primary in database.url"],
    ["server_version_num", "150000", undefined],
  ])("a server with the setting %s %s is accepted or refused: %s", async (setting, value, message) => {
    const databaseUrl = await pretending(setting, value);
    const opening = openDatabase({ stateDir: used, databaseUrl }, systemClock, silent);
    if (message === undefined) return (await opening)[Symbol.asyncDispose]();
    await expect(opening).rejects.toThrow(StartError);
    await expect(opening).rejects.toThrow(message);
  });

  test("two routers can migrate at the same time", async () => {
    await using server = await startEmbeddedServer(used, systemClock, silent);
    const databaseUrl = urlOf(server, "weiche");
    const both = await Promise.all(
      [1, 2].map(() => openDatabase({ stateDir: used, databaseUrl }, systemClock, silent)),
    );
    const { rows } = await both[0]!.pool.query<{ name: string }>("select name from kysely_migration order by name");
    await Promise.all(both.map((database) => database[Symbol.asyncDispose]()));
    const files = readdirSync(join(import.meta.dirname, "../../migrations")).sort();
    expect(rows.map(({ name }) => `${name}.sql`)).toEqual(files);
  });
});

test("an interrupted first start is repeated", async () => {
  const stateDir = stateFolder();
  const folder = join(stateDir, "database");
  const script = join(import.meta.dirname, "open-database.ts");
  const child = spawn(process.execPath, [script, stateDir], { stdio: "ignore" });
  await until("the cluster is half made", 10_000, () => {
    const half = existsSync(folder) && readdirSync(folder).find((name) => name.startsWith("cluster-"));
    return half !== false && half !== undefined && existsSync(join(folder, half, "global"));
  });
  await killed(child);
  expect(existsSync(clusterOf(stateDir))).toBe(false);

  await (await openIn(stateDir))[Symbol.asyncDispose]();
  await (await openIn(stateDir))[Symbol.asyncDispose](); // the orphan of the first attempt has ended by now
  expect(readdirSync(folder).filter((name) => name.startsWith("cluster"))).toEqual(["cluster"]);
});

test("an unreachable server gives an error of one line without the password", async () => {
  const opening = openDatabase(
    { stateDir: "/nowhere", databaseUrl: "postgres://u:canary@127.0.0.1:1/w" },
    systemClock,
    silent,
  );
  await expect(opening).rejects.toThrow(StartError);
  await expect(opening).rejects.toThrow(/^cannot use the database: (?!.*canary).*ECONNREFUSED/);
});

test("an unprivileged user runs the server as this user", async () => {
  const stateDir = stateFolder();
  const uid = isRoot ? 65_534 : process.getuid!();
  chownSync(stateDir, uid, statSync(stateDir).gid);
  const { child, said } = await routerIn(open, stateDir, isRoot ? { uid, gid: uid } : {});
  expect(said).toEqual({ uid, fsync: "on" });
  expect(statSync(clusterOf(stateDir)).uid).toBe(uid);
  child.stdin!.end();
  await once(child, "exit");
});

test("the server never runs as root, and a folder that its user cannot reach is replaced", async () => {
  const parent = stateFolder();
  const stateDir = join(parent, "clone/data/router");
  mkdirSync(stateDir, { recursive: true });
  chmodSync(parent, 0o700);
  const outside = join("/var/lib/weiche", createHash("sha256").update(dirname(stateDir)).digest("hex").slice(0, 16));
  open.defer(() => rmSync(outside, { recursive: true, force: true }));
  const database = await openIn(stateDir);
  const directory = database.connection.host!;
  expect(directory).toBe(isRoot ? outside : join(stateDir, "database"));
  expect(database.notice?.includes(outside) ?? false).toBe(isRoot);
  expect(statSync(join(directory, "cluster")).uid).not.toBe(0);
  await database.pool.query("create table kept as select 7 as seven");
  await database[Symbol.asyncDispose]();

  chmodSync(parent, 0o755); // reachable now, but the existing database stays in its folder
  await using again = await openIn(stateDir);
  expect((await again.pool.query("select seven from kept")).rows).toEqual([{ seven: 7 }]);
});
