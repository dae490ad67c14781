/** A pool reports the loss of an idle connection, unless the pool is closing. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { openPool } from "../../src/db/pool.ts";
import { testDatabases, until } from "./database-fixture.ts";

const server = await forThisFile(testDatabases());
const { connection } = await server.newDatabase();

/** Opens a pool with one idle connection. Returns the pid of the server process, too. */
async function idlePool() {
  const lost: string[] = [];
  const closed = Promise.withResolvers<void>();
  const pool = openPool({ ...connection, max: 1 }, (error) => void lost.push(error.message));
  pool.on("connect", (client) => client.once("end", () => closed.resolve()));
  const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  return { pool, lost, pid: rows[0]!.pid, closed: closed.promise };
}

test("a pool reports that the server ended an idle connection", async () => {
  const { pool, lost, pid } = await idlePool();
  process.kill(pid, "SIGTERM");
  await until("the loss is reported", 10_000, () => lost.length > 0);
  expect(lost).toEqual(["terminating connection due to administrator command"]);
  await pool.end();
});

test("a closing pool does not report that the server stops first", async () => {
  const { pool, lost, pid, closed } = await idlePool();
  process.kill(pid, "SIGSTOP");
  await pool.end();
  process.kill(pid, "SIGTERM");
  process.kill(pid, "SIGCONT");
  await closed;
  expect(lost).toEqual([]);
});
