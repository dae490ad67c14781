/** A real primary and a standby that streams from it, on loopback ports, with the embedded server's programs. */
import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCluster, passwordFile, superuser } from "../../src/db/cluster.ts";
import { openClient } from "../../src/db/client.ts";
import { embeddedHome, type EmbeddedHome } from "../../src/db/embedded-home.ts";
import { startProgram } from "../../src/db/server-program.ts";
import { until } from "./database-fixture.ts";

const databaseName = "weiche";
const startMsMax = 60_000;

export class ReplicatedDatabase implements AsyncDisposable {
  readonly primary: Server;
  readonly standby: Server;
  readonly #folder: string;

  private constructor(folder: string, primary: Server, standby: Server) {
    this.#folder = folder;
    this.primary = primary;
    this.standby = standby;
  }

  static async start(): Promise<ReplicatedDatabase> {
    const folder = mkdtempSync(join(tmpdir(), "weiche-replicated-"));
    chmodSync(folder, 0o711); // a server started by root runs as another user
    const home = await embeddedHome(folder);
    const [first, second] = [join(home.directory, "first"), join(home.directory, "second")];
    await makeCluster(home, first);
    execFileSync("cp", ["-pR", first, second]);
    const primary = await Server.start(home, first, ["wal_keep_size=64MB"]);
    appendFileSync(join(second, "postgresql.auto.conf"), `primary_conninfo = '${primary.conninfo}'\n`);
    writeFileSync(join(second, "standby.signal"), "", { mode: 0o644 });
    const standby = await Server.start(home, second, []);
    await primary.run(`create database ${databaseName}`, "postgres");
    const database = new ReplicatedDatabase(folder, primary, standby);
    await database.caughtUp();
    return database;
  }

  /** The URL with both hosts. */
  get url(): string {
    return urlOf(this.primary, this.standby);
  }

  /** Waits until the standby has all commits of the primary. */
  async caughtUp(): Promise<void> {
    const [{ at }] = (await this.primary.run("select pg_current_wal_lsn()::text as at", "postgres")) as [
      { at: string },
    ];
    await until("the standby has caught up", startMsMax, async () => {
      const [{ is }] = (await this.standby.run(
        `select coalesce(pg_last_wal_replay_lsn() >= '${at}', false) as is`,
        "postgres",
      )) as [{ is: boolean }];
      return is;
    });
  }

  /** Cuts the standby off from the primary's commits. */
  async cutOff(): Promise<void> {
    await this.standby.run("alter system set primary_conninfo = ''", "postgres");
    await this.standby.run("select pg_reload_conf()", "postgres");
    await until("the standby is cut off", startMsMax, async () => {
      const receivers = await this.standby.run("select from pg_stat_wal_receiver", "postgres");
      return receivers.length === 0;
    });
  }

  async promote(): Promise<void> {
    await this.standby.run("select pg_promote()", "postgres");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.primary.kill(), this.standby.kill()]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Returns the URL with the hosts in this order. */
export function urlOf(...servers: readonly Pick<Server, "port" | "password">[]): string {
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return `postgres://${superuser}:${servers[0]!.password}@${hosts}/${databaseName}`;
}

export class Server {
  readonly port: number;
  readonly password: string;
  readonly #pid: number;
  readonly #exit: Promise<number>;

  private constructor(port: number, password: string, pid: number, exit: Promise<number>) {
    this.port = port;
    this.password = password;
    this.#pid = pid;
    this.#exit = exit;
  }

  static async start(home: EmbeddedHome, cluster: string, settings: readonly string[]): Promise<Server> {
    const port = await freePort();
    const all = [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", ...settings];
    const { child, exit } = startProgram(home, home.programs.postgres, [
      ...["-D", cluster],
      ...all.flatMap((setting) => ["-c", setting]),
    ]);
    exit.catch(() => {});
    const server = new Server(port, readFileSync(passwordFile(home.directory), "utf8"), child.pid!, exit);
    await until("the server accepts connections", startMsMax, () =>
      server.run("select 1", "postgres").then(
        () => true,
        () => false,
      ),
    );
    return server;
  }

  get conninfo(): string {
    return `host=127.0.0.1 port=${this.port} user=${superuser} password=${this.password}`;
  }

  async run(sql: string, database: string = databaseName): Promise<readonly unknown[]> {
    const { port, password } = this;
    await using client = await openClient({ host: "127.0.0.1", port, user: superuser, password, database });
    return (await client.query(sql)).rows as unknown[];
  }

  /** Sends a signal. `SIGSTOP` stalls the server while its connections stay open; `SIGCONT` ends this. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) process.kill(pid, signal);
  }

  /** Kills the server at once, as a power failure does. Resolves when it is gone. */
  async kill(): Promise<void> {
    try {
      process.kill(this.#pid, "SIGQUIT"); // its children too, without a write to disk
    } catch {}
    await this.#exit;
  }
}

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}

/** A port that leads to the current primary, like a virtual address or a proxy. */
export interface MovingName extends Disposable {
  readonly port: number;
  /** The port to which new connections go. */
  leadsTo: number;
}

export async function openMovingName(port: number): Promise<MovingName> {
  const listener = createServer((near) => {
    const far = connect(name.leadsTo, "127.0.0.1");
    near.on("error", () => {}).on("close", () => far.destroy());
    far.on("error", () => {}).on("close", () => near.destroy());
    near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const name = {
    port: (listener.address() as AddressInfo).port,
    leadsTo: port,
    [Symbol.dispose]: () => void listener.close(),
  };
  return name;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
