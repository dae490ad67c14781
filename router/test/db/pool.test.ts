/** A pool reports the loss of an idle connection, but not of one that it is closing itself. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { openPool } from "../../src/db/pool.ts";
import { startDatabaseServer, until } from "./database-fixture.ts";

const server = await forThisFile(startDatabaseServer());

/** A pool with one idle connection, and the process that serves it. */
async function idlePool() {
  const lost: string[] = [];
  const closed = Promise.withResolvers<void>();
  const pool = openPool({ ...server.embedded.connection, max: 1 }, (error) => void lost.push(error.message));
  pool.on("connect", (client) => client.once("end", () => closed.resolve()));
  const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  return { pool, lost, pid: rows[0]!.pid, closed: closed.promise };
}

test("a server that ends an idle connection is reported", async () => {
  const { pool, lost, pid } = await idlePool();
  process.kill(pid, "SIGTERM");
  await until("the report", 10_000, () => lost.length > 0);
  expect(lost).toEqual(["terminating connection due to administrator command"]);
  await pool.end();
});

test("a server that stops before it has read that the pool is closed is not reported", async () => {
  const { pool, lost, pid, closed } = await idlePool();
  process.kill(pid, "SIGSTOP");
  await pool.end();
  process.kill(pid, "SIGTERM");
  process.kill(pid, "SIGCONT");
  await closed;
  expect(lost).toEqual([]);
});
