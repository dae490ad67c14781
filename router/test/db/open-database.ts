/** A process that opens a database as a router does, prints where the server is, and waits to be killed. */
import { systemClock } from "@weiche/shared/time/clock.ts";
import { openDatabase } from "../../src/db/database.ts";
import { silent } from "./prepared-database.ts";

const database = await openDatabase({ stateDir: process.argv[2]! }, systemClock, silent);
const { rows } = await database.pool.query<{ pid: number; fsync: string }>(
  "select pg_backend_pid() as pid, current_setting('fsync') as fsync",
);
console.log(JSON.stringify({ uid: process.getuid?.(), fsync: rows[0]!.fsync }));
process.stdin.resume();
process.stdin.once("end", () => void database[Symbol.asyncDispose]());
