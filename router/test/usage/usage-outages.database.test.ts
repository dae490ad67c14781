/** Promise C4: received usage is committed within 30 s after the database is back, without further usage. */
import { readdirSync, readFileSync } from "node:fs";
import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sleep, systemClock } from "@weiche/shared/time/clock.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import { createUsageLedger } from "../../src/usage/usage-ledger.ts";
import { openClient } from "../../src/db/client.ts";
import { openDatabase, openUsagePool, type Database } from "../../src/db/database.ts";
import { startEmbeddedServer, type EmbeddedServer } from "../../src/db/embedded-server.ts";
import { silent, temporaryFolder, until, urlOf } from "../db/database-fixture.ts";
import { openSilentProxy } from "../edge/silent-proxy.ts";
import { grantedNode as node, grants, makeRecord, sumOf, sumsOf } from "./usage-records.ts";

const promisedMs = 30_000;
const isNightly = process.env["WEICHE_NIGHTLY"] !== undefined;
const kills = isNightly ? 20 : 2;
/** In the nightly run, the server is stalled for longer than the ledger's statement timeout. */
const standstillMs = isNightly ? 15_000 : 0;
/** The quick run uses a shorter statement timeout. */
const statementMsMax = isNightly ? undefined : 500;
const folder = temporaryFolder();
let server: EmbeddedServer;
let databases = 0;
beforeAll(async () => {
  server = await startEmbeddedServer(folder.path, systemClock, silent);
});
afterAll(async () => {
  process.kill(server.pid(), "SIGQUIT");
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const random = createRandom(1);
const records = (count: number): UsageRecord[] =>
  Array.from({ length: count }, () => makeRecord(random, systemClock.now()));

async function newDatabase(): Promise<Database> {
  const name = `outage_${++databases}`;
  await using client = await openClient(server.connection);
  await client.query(`create database ${name}`);
  return await openDatabase({ stateDir: folder.path, databaseUrl: urlOf(server, name) }, systemClock, silent);
}

/**
 * Opens a ledger and records the usage that is sent to it. `rest` waits at most 30 s until all usage is acknowledged,
 * and returns the actual and the expected sums.
 */
async function open(database: Database, through: Database = database) {
  let failures = 0;
  const events = {
    usageCommitted() {},
    usageCommitFailed: () => void failures++,
    usageSetAside() {},
  };
  const ledger = await createUsageLedger(through, systemClock, events, { grants });
  const sent: UsageRecord[] = [];
  let acknowledged = 0;
  return {
    ledger,
    failures: () => failures,
    acknowledged: () => acknowledged,
    send: (count: number): void => {
      const batch = records(count);
      sent.push(...batch);
      void ledger.record(node, batch).then(() => (acknowledged += count));
    },
    rest: async () => {
      await until("all usage is acknowledged", promisedMs, () => acknowledged === sent.length);
      const sum = sumOf(sent);
      const expected = { records: sum, account: sum, user: sum, key: sum, model: sum, days: sum };
      return { found: await sumsOf(database), expected };
    },
  };
}

/** Opens a connection; undefined if the server accepts no more. */
const connected = () => openClient(server.connection).catch(() => undefined);

/** Lists the server's main process and its children. */
function processesOf(pid: number): number[] {
  const parentOf = (child: string): number => {
    try {
      return Number(readFileSync(`/proc/${child}/stat`, "utf8").split(") ").at(-1)!.split(" ")[1]);
    } catch {
      return 0; // it has ended
    }
  };
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  return [pid, ...children.map(Number)];
}

describe("usage received before and during an outage is committed", () => {
  test("after the server was stalled [C4]", async () => {
    await using database = await newDatabase();
    const { ledger, send, rest, acknowledged } = await open(database);
    await using _closing = ledger;
    send(10);
    await until("the first is committed", promisedMs, () => acknowledged() === 10);
    const stopped = processesOf(server.pid());
    for (const pid of stopped) process.kill(pid, "SIGSTOP");
    try {
      send(700);
      await until("a commit waits", promisedMs, () => database.usagePool.totalCount > database.usagePool.idleCount);
      await sleep(systemClock, standstillMs);
      send(10);
      expect(acknowledged()).toBe(10);
    } finally {
      for (const pid of stopped) process.kill(pid, "SIGCONT");
    }
    const { found, expected } = await rest();
    expect(found).toEqual(expected);
  });

  test(`after the server was killed ${kills} times [C4]`, async () => {
    await using database = await newDatabase();
    const { ledger, send, rest } = await open(database);
    await using _closing = ledger;
    for (let kill = 0; kill < kills; kill++) {
      const pid = server.pid();
      send(100);
      process.kill(pid, "SIGKILL");
      send(100);
      await until("the server runs again", 60_000, () => server.pid() !== pid);
    }
    const { found, expected } = await rest();
    expect(found).toEqual(expected);
  });

  test("after the server had no free connection [C4]", async () => {
    await using database = await newDatabase();
    const { ledger, send, rest, failures } = await open(database);
    await using _closing = ledger;
    send(10);
    await rest(); // so that there are connections
    const others: Client[] = [];
    const takeAll = async () => {
      for (let next = await connected(); next; next = await connected()) others.push(next);
    };
    await takeAll();
    await others[0]!.query(
      "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname like 'outage%'",
    );
    await takeAll();
    send(10);
    await until("the ledger is refused", promisedMs, () => failures() > 0);
    await Promise.all(others.map((client) => client.end()));
    const { found, expected } = await rest();
    expect(found).toEqual(expected);
  });

  test("after every connection went silent, while the router's other queries still wait [C4]", async () => {
    await using direct = await newDatabase();
    using proxy = await openSilentProxy(direct);
    const far = await openDatabase({ stateDir: "", databaseUrl: proxy.url }, systemClock, silent);
    const usagePool = openUsagePool(far.connection, () => {}, statementMsMax);
    const { ledger, send, rest } = await open(direct, { ...far, usagePool });
    send(10);
    await rest(); // so that there are connections
    const waiting = Array.from({ length: 8 }, () => far.pool.query("select pg_sleep(60)").catch(() => {}));
    await until("all connections of the others are in use", promisedMs, async () => {
      const asleep = await direct.pool.query("select from pg_stat_activity where query = 'select pg_sleep(60)'");
      return asleep.rowCount === 8;
    });
    proxy.silenceAll();
    send(10);
    const { found, expected } = await rest();
    expect(found).toEqual(expected);
    proxy[Symbol.dispose]();
    await Promise.all(waiting);
    await ledger[Symbol.asyncDispose]();
    await usagePool.end();
    await far[Symbol.asyncDispose]();
  });
});
