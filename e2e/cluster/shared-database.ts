/** Runs an embedded server in the test, so that several routers can use it by its address. */
import type { ClientConfig } from "pg";
import { startEmbeddedServer } from "@weiche/router/src/db/embedded-server.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";

interface SharedDatabase extends AsyncDisposable {
  readonly url: string;
  readonly connection: ClientConfig;
}

/** Starts the server in this router's state directory. */
export async function startSharedDatabase(stateDir: string): Promise<SharedDatabase> {
  const noted = () => {};
  const events = { databaseRestarted: noted, databaseRestartFailed: noted };
  const server = await startEmbeddedServer(stateDir, systemClock, events);
  const { connection } = server;
  const { host, port, user, password, database } = connection;
  const at = `${user}:${password as string}@localhost:${port}/${database}?host=${encodeURIComponent(host!)}`;
  return { url: `postgres://${at}`, connection, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
