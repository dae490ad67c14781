/** Processes around an embedded database: a router that is killed, a server that is not the router's. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { embeddedHome } from "../../src/db/embedded-home.ts";
import { readPostmaster } from "../../src/db/postmaster.ts";
import { until } from "./database-fixture.ts";

export const clusterOf = (stateDir: string) => join(stateDir, "database/cluster");

/** Starts a router's process. At the end of the test, it and its server are killed. */
export async function routerIn(
  open: AsyncDisposableStack,
  stateDir: string,
  options: object = {},
): Promise<{ child: ChildProcess; said: unknown }> {
  const script = join(import.meta.dirname, "open-database.ts");
  const child = spawn(process.execPath, [script, stateDir], { stdio: ["pipe", "pipe", "inherit"], ...options });
  open.defer(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface(child.stdout!), "line")) as [string];
  return { child, said: JSON.parse(line) };
}

export async function killed(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "exit");
}

export function processGroupOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[2]);
}

/** Starts PostgreSQL on the cluster of a state folder, not as a router does. */
export async function foreignServer(open: AsyncDisposableStack, stateDir: string, ...args: string[]) {
  const home = await embeddedHome(stateDir);
  const cluster = clusterOf(stateDir);
  const child = spawn(
    home.programs.postgres,
    ["-D", cluster, "-c", "listen_addresses=", "-c", `unix_socket_directories=${home.directory}`, ...args],
    { ...home.user, cwd: "/", stdio: "ignore" },
  );
  open.defer(async () => {
    child.kill("SIGQUIT");
    if (child.exitCode === null) await once(child, "exit");
  });
  await until("the foreign server is ready", 10_000, () => readPostmaster(cluster)?.status === "ready");
  return { connection: { host: home.directory, port: 5432, user: "weiche", password: "none" } };
}
