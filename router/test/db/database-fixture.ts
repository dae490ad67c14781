/** A real embedded server per test file, in a temporary folder, with any number of databases. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openClient } from "../../src/db/client.ts";
import { openDatabase, type Database } from "../../src/db/database.ts";
import { startEmbeddedServer, type EmbeddedServer } from "../../src/db/embedded-server.ts";
import { makeUnique, prepareDatabase, preparedName, silent } from "./prepared-database.ts";

export { silent };

export interface DatabaseServer extends AsyncDisposable {
  readonly embedded: EmbeddedServer;
  /** Makes an empty database with the current schema. */
  newDatabase(): Promise<Database>;
  /** Opens the same database again, as another router does. */
  openAgain(database: Database): Promise<Database>;
}

export async function startDatabaseServer(): Promise<DatabaseServer> {
  const stateDir = temporaryFolder();
  await prepareDatabase(stateDir.path);
  const embedded = await startEmbeddedServer(stateDir.path, systemClock, silent);
  const open = (databaseUrl: string) => openDatabase({ stateDir: stateDir.path, databaseUrl }, systemClock, silent);
  const opened: Database[] = [];
  let count = 0;
  return {
    embedded,
    async newDatabase() {
      const name = `test_${++count}`;
      await using client = await openClient({ ...embedded.connection, database: "postgres" });
      await client.query(`create database ${name} template ${preparedName}`);
      await makeUnique({ ...embedded.connection, database: name });
      return track(await open(urlOf(embedded, name)));
    },
    openAgain: async (database) => track(await open(database.connection.connectionString!)),
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((database) => database[Symbol.asyncDispose]()));
      process.kill(embedded.pid(), "SIGQUIT"); // at once, because the files are not needed any more
      await embedded[Symbol.asyncDispose]();
      stateDir[Symbol.dispose]();
    },
  };
  function track(database: Database): Database {
    opened.push(database);
    return database;
  }
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
