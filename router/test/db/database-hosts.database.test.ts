/** A router's view of a primary and a standby during a failover. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { hostUrls, withOneHost } from "../../src/config/database-url.ts";
import { clientOf } from "../../src/db/client.ts";
import { DatabaseHosts, primaryOf } from "../../src/db/database-hosts.ts";
import { openDatabase, type Database } from "../../src/db/database.ts";
import { listen } from "../../src/db/listener.ts";
import { silent, until } from "./database-fixture.ts";
import { openMovingName, ReplicatedDatabase, urlOf, type MovingName, type Server } from "./replicated-database.ts";

const open = new AsyncDisposableStack();
const moved: string[] = [];
let servers: ReplicatedDatabase;
let database: Database;

beforeAll(async () => {
  servers = open.use(await ReplicatedDatabase.start());
  const events = { ...silent, databaseMoved: (host: string) => void moved.push(host) };
  const databaseUrl = urlOf(servers.standby, servers.primary);
  database = open.use(await openDatabase({ stateDir: "", databaseUrl }, systemClock, events));
}, 180_000);
afterAll(() => open.disposeAsync());

const write =
  "insert into leases values ('test', gen_random_uuid(), now()) on conflict (name) do update set held_until = now()";
const hostOf = ({ port }: { readonly port: number }) => `127.0.0.1:${port}`;
const portOf = async ({ pool }: Pick<Database, "pool">) =>
  (await pool.query<{ port: number }>("select inet_server_port() as port")).rows[0]!.port;

/** Waits until a server accepts writes, and returns its port. */
async function writtenTo({ pool }: Pick<Database, "pool"> = database): Promise<number> {
  await until("a write succeeds", 20_000, () =>
    pool.query(write).then(
      () => true,
      () => false,
    ),
  );
  return portOf({ pool });
}

test("a URL with several hosts becomes one URL per host, with the same user, path and options", () => {
  expect(hostUrls("postgres://u:p%40@a,b:5433,[::1]:5434/w?sslmode=verify-full")).toEqual([
    "postgres://u:p%40@a/w?sslmode=verify-full",
    "postgres://u:p%40@b:5433/w?sslmode=verify-full",
    "postgres://u:p%40@[::1]:5434/w?sslmode=verify-full",
  ]);
  expect(hostUrls("postgres:///w?host=/run/postgresql")).toEqual(["postgres:///w?host=/run/postgresql"]);
  expect(() => hostUrls("postgres:///w?host=a,b")).toThrow(/before the path, as in postgres:/);
  expect(withOneHost("postgres://u@a:1,b:2/w", (url) => url.replace("u@", "u:secret@"))).toBe(
    "postgres://u:secret@a:1,b:2/w",
  );
});

test("the primary is used, whatever its position in the list", async () => {
  expect(await writtenTo()).toBe(servers.primary.port);
  expect(await primaryOf(servers.url)).toBe(urlOf(servers.primary));
});

test("losing a connection during the check for a primary does not end the process", async () => {
  await using hosts = await DatabaseHosts.find(servers.url, systemClock, { databaseMoved: () => {} });
  // An `error` event without a listener throws.
  expect(clientOf(hosts.connection).emit("error", new Error("lost"))).toBe(true);
});

test("without a primary the start is refused with the state of each host and without the password", async () => {
  const dead = { port: 1, password: servers.primary.password };
  const opening = (...hosts: readonly Pick<Server, "port" | "password">[]) =>
    openDatabase({ stateDir: "", databaseUrl: urlOf(...hosts) }, systemClock, silent);
  await expect(opening(servers.standby)).rejects.toThrow(StartError);
  await expect(opening(servers.standby)).rejects.toThrow(/standby/);
  const refused = await opening(dead, servers.standby).catch((error: Error) => error.message);
  expect(refused).toMatch(
    new RegExp(
      `no host of the database is its primary \\(127.0.0.1:1: .*ECONNREFUSED.*; ${hostOf(servers.standby)}: .*standby`,
    ),
  );
  expect(refused).not.toContain(servers.primary.password);
});

describe("hosts behind one name", () => {
  let name: MovingName;
  let behind: Database;
  beforeAll(async () => {
    name = open.use(await openMovingName(servers.primary.port));
    const databaseUrl = urlOf({ port: name.port, password: servers.primary.password });
    behind = open.use(await openDatabase({ stateDir: "", databaseUrl }, systemClock, silent));
  });

  test("a connection to a standby is not used [R3]", async () => {
    expect(await writtenTo(behind)).toBe(servers.primary.port);
    name.leadsTo = servers.standby.port;
    behind.doubt();
    await until("there are new connections", 10_000, () => behind.pool.totalCount === 0);
    await expect(behind.pool.query("select 1")).rejects.toThrow(/standby/);
    name.leadsTo = servers.primary.port;
    expect(await writtenTo(behind)).toBe(servers.primary.port);
  });

  test("all connections to a primary that becomes read-only are closed at the first write [R3]", async () => {
    await behind.usagePool.query(write);
    await servers.promote();
    await until("the standby is the primary", 20_000, () =>
      servers.standby.run(write).then(
        () => true,
        () => false,
      ),
    );
    await setReadOnly("on");
    name.leadsTo = servers.standby.port;
    // A connection of the server may notice the changed setting a moment later.
    const written = () => behind.pool.query(write).then(() => "written", String);
    await expect.poll(written).toMatch(/read-only/);
    await until("the other pool is empty", 5_000, () => behind.usagePool.totalCount === 0);
    expect(await writtenTo({ pool: behind.usagePool })).toBe(servers.standby.port);
  });
});

async function setReadOnly(value: "on" | "off"): Promise<void> {
  await servers.primary.run(`alter system set default_transaction_read_only = ${value}`, "postgres");
  await servers.primary.run("select pg_reload_conf()", "postgres");
}

test("pools and listeners use the host that accepts writes [R3]", async () => {
  expect(await writtenTo()).toBe(servers.standby.port);
  expect(moved).toEqual([hostOf(servers.standby)]);
  await using _listening = await listen(database.connection, "weiche_changes", systemClock, () => {});
  const listening = async () =>
    (await servers.standby.run("select from pg_stat_activity where query = 'listen weiche_changes'", "postgres"))
      .length;
  await until("the listener uses the new primary", 10_000, async () => (await listening()) === 1);
});

test("a statement on a stalled primary fails once another primary is found, before its timeout [R3]", async () => {
  await setReadOnly("off");
  servers.standby.signal("SIGSTOP");
  const hung = database.pool.query(write).catch(({ message }: Error) => message);
  database.doubt();
  const bound = new Promise((resolve) => setTimeout(resolve, 15_000, "it hangs").unref());
  expect(await Promise.race([hung, bound])).toMatch(/Connection terminated/);
  expect(await writtenTo()).toBe(servers.primary.port);
  servers.standby.signal("SIGCONT");
});

test("connections move to another primary when a primary is killed [R3]", async () => {
  await servers.primary.kill();
  expect(await writtenTo()).toBe(servers.standby.port);
  expect(moved.at(-1)).toBe(hostOf(servers.standby));
});
