/**
 * Databases for tests. This is how a test gets one:
 *
 * - `testDatabases`: databases of its own on the server of the run (run-server.ts). Each is a copy of one that has all
 *   migrations. A test must not stop or configure this server, nor count what others do on it.
 * - `prepareDatabase` (prepared-database.ts) and a router or `startEmbeddedServer` in that folder: a server of its own.
 * - `ReplicatedDatabase` (replicated-database.ts): a primary and a standby.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import { inject } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openClient } from "../../src/db/client.ts";
import { openDatabase, type Database } from "../../src/db/database.ts";
import type { EmbeddedServer } from "../../src/db/embedded-server.ts";
import { makeUnique, preparedName, silent } from "./prepared-database.ts";
import type {} from "./run-server.ts";

export { silent };

export interface TestDatabases extends AsyncDisposable {
  /** To the server of the run. */
  readonly connection: ClientConfig;
  /** Makes a database without content but with the current schema. */
  newDatabase(): Promise<Database>;
  /** Makes a database without a schema. Returns its URL. */
  emptyDatabase(): Promise<string>;
  /** Opens the same database again, as another router does. */
  openAgain(database: Database): Promise<Database>;
}

let made = 0;

/** Makes databases on the server of the run. Disposing closes all that were opened here. */
export async function testDatabases(): Promise<TestDatabases> {
  const server = inject("databaseServer");
  const opened: Database[] = [];
  async function make(template: string): Promise<string> {
    const name = `test_${process.pid}_${++made}`;
    await using client = await openClient({ ...server.connection, database: "postgres" });
    await client.query(`create database ${name} template ${template}`);
    return urlOf(server, name);
  }
  async function open(databaseUrl: string): Promise<Database> {
    const database = await openDatabase({ stateDir: "/nowhere", databaseUrl }, systemClock, silent);
    opened.push(database);
    return database;
  }
  return {
    connection: server.connection,
    async newDatabase() {
      const url = await make(preparedName);
      await makeUnique({ connectionString: url });
      return await open(url);
    },
    emptyDatabase: () => make("template1"),
    openAgain: (database) => open(database.connection.connectionString!),
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((database) => database[Symbol.asyncDispose]()));
    },
  };
}

export function urlOf({ connection }: Pick<EmbeddedServer, "connection">, name: string): string {
  const { host, port, user, password } = connection;
  return `postgres://${user}:${password as string}@localhost:${port}/${name}?host=${encodeURIComponent(host!)}`;
}

export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "weiche-db-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Waits until a condition is true; fails after its timeout. */
export async function until(what: string, msMax: number, condition: () => boolean | Promise<boolean>): Promise<void> {
  const startMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startMs > msMax) throw new Error(`not within ${msMax} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
