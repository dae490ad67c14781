/** A host with Debian 12 in a folder, booted with systemd in namespaces of its own. Needs root and debootstrap. */
import { execFile, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { notRun, type RunOptions } from "@weiche/shared/testing/needs.ts";

const mirror = "http://deb.debian.org/debian";
const bootMsMax = 120_000;

/** Options of a test that boots such a host. */
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
  /** Process 1 of the host, as this machine counts. */
  #first: number | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** A bare Debian 12 with what `debootstrap --variant=minbase` installs, the packages of ours and what they depend on. */
  static async install(folder: string, packages: readonly string[]): Promise<DebianHost> {
    await promisify(execFile)("debootstrap", ["--variant=minbase", "bookworm", folder, mirror], { maxBuffer: 1 << 26 });
    const host = new DebianHost(folder);
    copyFileSync("/etc/resolv.conf", join(folder, "etc/resolv.conf"));
    const names = host.bring("packages", packages);
    await host.#chroot("apt-get", "update");
    await host.#chroot("apt-get", "install", "-y", "--no-install-recommends", ...names);
    return host;
  }

  /** Copies files into a folder of the host. Returns where each lies there. */
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
    const script = join(import.meta.dirname, "boot-in-namespaces.sh");
    const spaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net", "--fork", "--kill-child"];
    this.#boot = spawn("unshare", [...spaces, script, this.#folder], { stdio: ["ignore", "ignore", "inherit"] });
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

  /** Runs a line of shell on the booted host. Returns what it said; rejects with it when it failed. */
  async run(line: string): Promise<string> {
    return await this.#execute("nsenter", ["--target", String(this.#first), "--all", "/bin/sh", "-c", line]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#boot && this.#boot.exitCode === null && this.#boot.signalCode === null) {
      const ended = once(this.#boot, "exit");
      this.#boot.kill("SIGKILL"); // --kill-child: the host goes along
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }

  #chroot(...command: readonly string[]): Promise<string> {
    return this.#execute("chroot", [this.#folder, ...command]);
  }

  /** Runs a command with a new host's environment: nothing of this machine's. */
  async #execute(program: string, args: readonly string[]): Promise<string> {
    const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", DEBIAN_FRONTEND: "noninteractive", LANG: "C.UTF-8" };
    try {
      const { stdout, stderr } = await promisify(execFile)(program, args, { env, maxBuffer: 1 << 26 });
      return stdout + stderr;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${args.join(" ")}\n${stdout ?? ""}${stderr ?? ""}`, { cause: error });
    }
  }
}
