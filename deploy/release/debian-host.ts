/**
 * A Debian host in a folder. Commands run in their own namespaces, with this machine's network. After a boot, they run
 * with systemd as process 1 and without network. Needs root and debootstrap.
 */
import { execFile, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { notRun, type RunOptions } from "@weiche/shared/testing/needs.ts";

const mirror = "http://deb.debian.org/debian";
const bootMsMax = 120_000;
const enter = join(import.meta.dirname, "in-namespaces.sh");
const namespaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child"];
/** File of additional authorities that this machine trusts besides the built-in ones of Node.js. */
const authorities = process.env["NODE_EXTRA_CA_CERTS"];
const authoritiesThere = "/etc/authorities.pem";
const path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
const variables = [
  ...[path, "DEBIAN_FRONTEND=noninteractive", "LANG=C.UTF-8", "HOME=/root"],
  ...(authorities === undefined ? [] : [`NODE_EXTRA_CA_CERTS=${authoritiesThere}`]),
];

/** Options of a test that needs such a host. */
export function needsHost(): RunOptions {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return notRun("it needs root on Linux");
  const programs = ["debootstrap", "dpkg-deb", "unshare", "nsenter"];
  const absent = programs.find((program) => spawnSync(program, ["--version"]).error !== undefined);
  if (absent === undefined) return {};
  return notRun(`${absent} is missing; as root: apt-get install -y debootstrap dpkg util-linux`);
}

export class DebianHost implements AsyncDisposable {
  readonly #folder: string;
  #boot: ChildProcess | undefined;
  /** The booted host's process 1, by its pid on this machine. */
  #first: number | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Makes a bare Debian with `debootstrap --variant=minbase`. */
  static async make(folder: string, suite: "bookworm" | "trixie"): Promise<DebianHost> {
    await promisify(execFile)("debootstrap", ["--variant=minbase", suite, folder, mirror], { maxBuffer: 1 << 26 });
    copyFileSync("/etc/resolv.conf", join(folder, "etc/resolv.conf"));
    if (authorities !== undefined) copyFileSync(authorities, join(folder, authoritiesThere));
    return new DebianHost(folder);
  }

  /** Installs packages: Debian's by their names, ours by the files' paths on the host. */
  async install(packages: readonly string[]): Promise<void> {
    await this.run(`apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")}`);
  }

  /** Copies files into a folder of the host. Returns their paths there. */
  bring(folder: string, files: readonly string[]): readonly string[] {
    mkdirSync(join(this.#folder, folder), { recursive: true });
    for (const file of files) copyFileSync(file, join(this.#folder, folder, basename(file)));
    return files.map((file) => `/${folder}/${basename(file)}`);
  }

  write(path: string, text: string): void {
    writeFileSync(join(this.#folder, path), text);
  }

  read(path: string): string {
    return readFileSync(join(this.#folder, path), "utf8");
  }

  async boot(): Promise<void> {
    const systemd = [path, "container=other", "/lib/systemd/systemd", "--log-target=null"];
    this.#boot = spawn("unshare", [...namespaces, "--net", enter, this.#folder, ...systemd], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const deadline = AbortSignal.timeout(bootMsMax);
    for (;;) {
      deadline.throwIfAborted();
      if (this.#boot.exitCode !== null) throw new Error(`the host did not boot: ${this.#boot.exitCode}`);
      const children = readFileSync(`/proc/${this.#boot.pid}/task/${this.#boot.pid}/children`, "utf8");
      this.#first = Number.parseInt(children, 10) || undefined;
      const state =
        this.#first && (await this.run("systemctl is-system-running").catch((error: Error) => error.message));
      if (state && /^(running|degraded)$/m.test(state)) return;
      await sleep(200);
    }
  }

  /** Runs a shell line, as root or in a user's home. Returns its output, or rejects with it if it fails. */
  async run(line: string, user?: string): Promise<string> {
    const [program, ...args] = this.#command(line, user);
    try {
      const { stdout, stderr } = await promisify(execFile)(program!, args, { maxBuffer: 1 << 26 });
      return stdout + stderr;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${line}\n${stdout ?? ""}${stderr ?? ""}`, { cause: error });
    }
  }

  /** Like `run`, on a host that is not booted, without waiting. SIGKILL ends it and all its children. */
  start(line: string, user?: string): ChildProcess {
    const [program, ...args] = this.#command(line, user);
    return spawn(program!, args, { stdio: ["ignore", "pipe", "pipe"] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#boot && this.#boot.exitCode === null && this.#boot.signalCode === null) {
      const ended = once(this.#boot, "exit");
      this.#boot.kill("SIGKILL"); // --kill-child also ends the host
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }

  /** Uses a new host's environment, without variables of this machine. */
  #command(line: string, user?: string): readonly string[] {
    const booted = ["nsenter", "--target", String(this.#first), "--all", "env", "-i"];
    const own = this.#first === undefined ? ["unshare", ...namespaces, enter, this.#folder] : booted;
    const shell = user === undefined ? ["sh", "-c", line] : asUser(user, line);
    // Process 1 stays root's. After a change of user it would lose the signal that ends it with its parent here.
    return [...own, ...variables, "sh", "-c", '"$@"; exit $?', "sh", ...shell];
  }
}

function asUser(user: string, line: string): readonly string[] {
  const credentials = ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--init-groups"];
  return [...credentials, "env", `HOME=/home/${user}`, "sh", "-c", `cd; ${line}`];
}
