/**
 * Starts one PostgreSQL for all test files of a kind in a run, before the first of them (`globalSetup` of Vitest). Its
 * database `weiche` has the current schema; `testDatabases` makes copies of it.
 */
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openClient } from "../../src/db/client.ts";
import { startEmbeddedServer, type EmbeddedServer } from "../../src/db/embedded-server.ts";
import { prepareDatabase, silent } from "./prepared-database.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseServer: Pick<EmbeddedServer, "connection">;
  }
}

export default async function startRunServer(project: TestProject): Promise<() => Promise<void>> {
  const stateDir = mkdtempSync(join(tmpdir(), "weiche-run-"));
  await prepareDatabase(stateDir);
  // Several test files have their pools open at once, and a run makes more databases than need a vacuum.
  const settings = "max_connections = 400\nautovacuum = off\n";
  appendFileSync(join(stateDir, "database/cluster/postgresql.auto.conf"), settings);
  const server = await startEmbeddedServer(stateDir, systemClock, silent);
  await using client = await openClient({ ...server.connection, database: "postgres" });
  // Tests have no power cuts, so their changes need not wait for the disk.
  await client.query("alter role all set synchronous_commit = off");
  project.provide("databaseServer", { connection: server.connection });
  return async () => {
    process.kill(server.pid(), "SIGQUIT"); // at once, because the files are not needed any more
    await server[Symbol.asyncDispose]();
    rmSync(stateDir, { recursive: true, force: true });
  };
}
