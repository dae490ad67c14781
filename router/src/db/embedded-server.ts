/**
 * Runs PostgreSQL as a process of the router. The server outlives a killed router, so that no write is cut off; the next
 * router adopts it. A server that dies is started again.
 *
 *   no cluster ──initdb──▶ cluster ──spawn──▶ running ──SIGINT──▶ stopped
 *                             ▲                  │
 *                             └───── killed ─────┘        a new router finds `running`: adopted
 *
 * The server has its own session: otherwise Ctrl-C in a terminal would end it before the router has drained.
 */
import { accessSync, constants, existsSync, readFileSync, realpathSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import { socketPathBytesMax } from "@weiche/shared/program/admin-socket.ts";
import { every, sleep, type Clock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { openClient } from "./client.ts";
import { makeCluster, passwordFile, removeHalfMade, superuser } from "./cluster.ts";
import { embeddedHome, existingFolder, type EmbeddedHome } from "./embedded-home.ts";
import { disownPostmaster, isPostmaster, readPostmaster, runningPostmaster, type Postmaster } from "./postmaster.ts";
import { lastWords, startProgram } from "./server-program.ts";

export interface EmbeddedServer extends AsyncDisposable {
  readonly connection: ClientConfig;
  /** The pid of the server's main process. It changes with a restart. */
  readonly pid: () => number;
  /** True if the server was already running. */
  readonly adopted: boolean;
  readonly notice?: string;
}

export interface EmbeddedServerEvents {
  /** The server died and runs again. */
  databaseRestarted(): void;
  databaseRestartFailed(error: unknown): void;
}

const databaseName = "weiche";
const startMsMax = 120_000;
/** The time that orphaned processes of a killed server may need to end. */
const retryMsMax = 5_000;
const fastStopMsMax = 10_000;
const watchMs = 1_000;

/**
 * Passed at each start, so that no configuration file overrides them. The log never contains statements or values: errors
 * of statements may quote them, so these errors go only to the router.
 */
const fixedSettings = {
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  log_statement: "none",
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_min_duration_statement: "-1",
  log_error_verbosity: "terse",
  logging_collector: "off",
};

export async function startEmbeddedServer(
  stateDir: string,
  clock: Clock,
  events: EmbeddedServerEvents,
): Promise<EmbeddedServer> {
  const home = await embeddedHome(stateDir);
  const cluster = join(home.directory, "cluster");
  removeHalfMade(home.directory);
  if (!existsSync(cluster)) await makeCluster(home, cluster);
  const password = readPassword(home);

  const adopted = await adopt(home, cluster, clock, password);
  let server = adopted ?? (await launch(home, cluster, await chooseAddress(home.directory), clock));
  const connection = { ...connectionTo(server, password), database: databaseName };
  try {
    await createDatabase(connectionTo(server, password));
  } catch (error) {
    await stop(server.pid, cluster, clock);
    throw new StartError(`cannot use the database: ${reasonOf(error as Error, home)}`);
  }

  let restarting: Promise<void> | undefined;
  const watch = every(clock, watchMs, () => {
    if (!isPostmaster(server.pid, cluster)) return (restarting = restart());
  });
  async function restart(): Promise<void> {
    try {
      server = await launch(home, cluster, server, clock);
      events.databaseRestarted();
    } catch (error) {
      events.databaseRestartFailed(error);
    }
  }

  return {
    connection,
    pid: () => server.pid,
    adopted: adopted !== undefined,
    notice: home.notice,
    async [Symbol.asyncDispose]() {
      watch.cancel();
      await restarting;
      await stop(server.pid, cluster, clock);
    },
  };
}

/**
 * Returns how to connect to the embedded server that a router runs. Reads only its files, because the caller may not see
 * its process, as in the sandbox of weiche-backup.service. Throws a `StartError` if no server runs or it cannot be reached.
 */
export async function runningServer(stateDir: string): Promise<ClientConfig> {
  const directory = existingFolder(stateDir);
  if (directory === undefined) {
    if (isClosed(stateDir)) throw new StartError(`cannot read ${stateDir} (EACCES): run this as root`);
    throw new StartError(`there is no embedded database in ${stateDir}: name the configuration file of the router`);
  }
  const found = readPostmaster(join(directory, "cluster"));
  if (found?.status !== "ready")
    throw new StartError(`the database in ${directory} does not run: start the router first`);
  const connection = { ...connectionTo(found, readPassword({ directory })), database: databaseName };
  try {
    await using _client = await openClient(connection);
    return connection;
  } catch (error) {
    throw new StartError(
      `the database in ${directory} does not answer (${(error as Error).message}): start the router first`,
    );
  }
}

/** Returns whether this user may not enter the directory. */
function isClosed(directory: string): boolean {
  try {
    accessSync(directory, constants.X_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}

/** Reads the password, which is needed only on loopback; "" if there is none. */
function readPassword({ directory }: Pick<EmbeddedHome, "directory">): string {
  try {
    return readFileSync(passwordFile(directory), "utf8");
  } catch {
    return "";
  }
}

function reasonOf({ message }: Error, { directory }: EmbeddedHome): string {
  const why = /password/i.test(message) ? ` (was ${passwordFile(directory)} replaced?)` : "";
  return `${message}${why}`;
}

/** Adopts a server that still runs on the cluster; undefined if there is none. */
async function adopt(
  home: EmbeddedHome,
  cluster: string,
  clock: Clock,
  password: string,
): Promise<Postmaster | undefined> {
  const found = await settled(cluster, clock, clock.monotonicMs() + startMsMax);
  if (!found) return undefined;
  try {
    await using client = await openClient({ ...connectionTo(found, password), connectionTimeoutMillis: retryMsMax });
    const { rows } = await client.query<{ data_directory: string }>("show data_directory");
    if (realpathSync(rows[0]!.data_directory) === realpathSync(cluster)) return found;
    throw new Error("the server uses another data folder");
  } catch (error) {
    throw new StartError(`a PostgreSQL server (pid ${found.pid}) holds ${cluster}: ${reasonOf(error as Error, home)}`);
  }
}

/** Waits while the cluster's server starts or stops. Returns undefined once there is none. */
async function settled(cluster: string, clock: Clock, untilMs: number): Promise<Postmaster | undefined> {
  const sinceMs = clock.monotonicMs();
  for (;;) {
    const found = readPostmaster(cluster);
    if (!found) return undefined;
    if (found.status === "ready" && isPostmaster(found.pid, cluster)) return found;
    const pid = runningPostmaster(found.pid, cluster);
    if (pid === undefined) {
      disownPostmaster(cluster);
      return undefined;
    }
    // the pid file is damaged and does not have the server's address
    if (found.pid !== pid || (found.status === "unknown" && clock.monotonicMs() - sinceMs > retryMsMax)) {
      await stop(pid, cluster, clock);
      continue;
    }
    if (clock.monotonicMs() > untilMs)
      throw new StartError(`the database server (pid ${found.pid}) did not become ready in time`);
    await sleep(clock, 20);
  }
}

type Address = Pick<Postmaster, "port" | "socketDir">;

/** Chooses a Unix socket in the folder if its path is short enough, otherwise a free port on loopback. */
async function chooseAddress(directory: string): Promise<Address> {
  const port = 5432;
  if (Buffer.byteLength(join(directory, `.s.PGSQL.${port}`)) <= socketPathBytesMax)
    return { port, socketDir: directory };
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const free = (probe.address() as { port: number }).port;
  probe.close();
  return { port: free, socketDir: "" };
}

async function launch(home: EmbeddedHome, cluster: string, address: Address, clock: Clock): Promise<Postmaster> {
  const giveUpMs = clock.monotonicMs() + retryMsMax;
  for (;;) {
    const server = (await settled(cluster, clock, giveUpMs)) ?? (await spawnServer(home, cluster, address, clock));
    if (server) return server;
    if (clock.monotonicMs() > giveUpMs) throw new StartError(`the database does not start: ${lastWords(home)}`);
    await sleep(clock, 250);
  }
}

/** Resolves once the server is ready, or with undefined if it ended. */
async function spawnServer(home: EmbeddedHome, cluster: string, { port, socketDir }: Address, clock: Clock) {
  const settings = {
    ...fixedSettings,
    port: String(port),
    listen_addresses: socketDir === "" ? "127.0.0.1" : "",
    unix_socket_directories: socketDir,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const { child, exit } = startProgram(home, home.programs.postgres, ["-D", cluster, ...args]);
  let ended = false;
  const end = exit.finally(() => (ended = true));
  end.catch(() => {}); // thrown below
  const untilMs = clock.monotonicMs() + startMsMax;
  while (!ended) {
    const found = readPostmaster(cluster);
    if (found && found.pid === child.pid && found.status === "ready") {
      child.unref();
      return found;
    }
    if (clock.monotonicMs() > untilMs)
      throw new StartError("the database is still recovering: start the router again later");
    await sleep(clock, 20);
  }
  await end;
  return undefined;
}

function connectionTo({ port, socketDir }: Address, password: string): ClientConfig {
  return { host: socketDir === "" ? "127.0.0.1" : socketDir, port, user: superuser, password, database: "postgres" };
}

async function createDatabase(connection: ClientConfig): Promise<void> {
  await using client = await openClient(connection);
  const { rowCount } = await client.query("select 1 from pg_database where datname = $1", [databaseName]);
  if (rowCount === 0) await client.query(`create database ${databaseName}`);
}

/** Stops the server with a fast shutdown, which rolls back open transactions; after 10 s with an immediate one. */
async function stop(pid: number, cluster: string, clock: Clock): Promise<void> {
  for (const [signal, msMax] of [
    ["SIGINT", fastStopMsMax],
    ["SIGQUIT", fastStopMsMax / 2],
  ] as const) {
    const untilMs = clock.monotonicMs() + msMax;
    if (!isPostmaster(pid, cluster)) return;
    process.kill(pid, signal);
    while (isPostmaster(pid, cluster) && clock.monotonicMs() < untilMs) await sleep(clock, 10);
  }
}
