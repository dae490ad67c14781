/** `npm start` and `npm test` of a checkout on a Debian with only git, npm and ca-certificates, as for a new user. */
import { execFile, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { until } from "../e2e/cluster/cluster.ts";
import { DebianHost, needsHost } from "./release/debian-host.ts";

const minutes = 60_000;
const user = "someone";
const folder = mkdtempSync(join(tmpdir(), "weiche-bare-"));
const bundle = join(folder, "weiche.bundle");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Makes a host with a clone of this commit in the user's home, and without package lists, as on a new machine. */
async function bareHost(suite: "bookworm" | "trixie"): Promise<DebianHost> {
  const host = await DebianHost.make(join(folder, suite), suite);
  await host.install(["git", "npm", "ca-certificates"]);
  await host.run(`rm -r /var/lib/apt/lists && useradd --create-home ${user}`);
  spawnSync("git", ["bundle", "create", bundle, "HEAD"], { cwd: import.meta.dirname });
  const [cloned] = host.bring("srv", [bundle]);
  await host.run(`git clone --quiet ${cloned} weiche`, user);
  return host;
}

/** Runs a command of the checkout that fails. Returns its output. */
async function refusal(host: DebianHost, command: string): Promise<string> {
  const said = await host.run(`cd weiche && ${command}`, user).catch((error: Error) => error.message);
  expect(said).toContain("weiche: nothing is installed yet: this host lacks\n");
  await host.run("test ! -e weiche/node_modules -a ! -e weiche/data", user);
  return said;
}

describe("on Debian 13", needsHost(), () => {
  let host: DebianHost;
  beforeAll(async () => void (host = await bareHost("trixie")), 10 * minutes);

  test(
    "npm start names everything that is missing before it installs anything, and serves afterwards, also after an interrupted installation [G7]",
    { timeout: 15 * minutes, ...needs("curl") },
    async () => {
      const said = await refusal(host, "npm start");
      expect(said).toContain("libatomic.so.1, which Node.js is linked with");
      const [, command] = /^Install it as root, then try again: (.+)$/m.exec(said)!;
      await host.run(command!);

      const packages = join(folder, "trixie/home", user, "weiche/node_modules");
      const cutOff = new Start(host);
      await until(
        "half of it to be installed",
        () => existsSync(packages) && readdirSync(packages).length > 100,
        5 * minutes,
      );
      await cutOff.end();

      const start = new Start(host);
      await until("its welcome", () => start.says("Stop it: Ctrl-C"), 10 * minutes);
      const line = start.said.split("\n").find((text) => text.trim().startsWith("curl -N"))!;
      const { stdout } = await promisify(execFile)("bash", ["-c", line]);
      expect(stdout).toContain('"role":"assistant"');
      expect(stdout.trimEnd().endsWith("data: [DONE]")).toBe(true);
      await start.end();
    },
  );

  test(
    "npm test passes there, and counts tests without their program as not run, with the reason [G7]",
    { timeout: 90 * minutes },
    async () => {
      const said = await host.run("cd weiche && npm test", user);
      expect(said).toMatch(/^[1-9]\d+ passed, 0 failed, [1-9]\d* skipped$/m);
      for (const program of ["cc", "curl", "promtool", "ps", "systemd-analyze"])
        expect(said).toMatch(new RegExp(`^\\d+ not run: ${program} is missing; as root: apt-get install -y .+$`, "m"));
    },
  );
});

describe("on Debian 12", needsHost(), () => {
  test(
    "npm start reports that the Node.js is too old, and names the version to install [G7]",
    { timeout: 10 * minutes },
    async () => {
      await using host = await bareHost("bookworm");
      const said = await refusal(host, "npm start");
      expect(said).toContain("Node.js 20.17 or newer, on which npm runs; this is 18.");
      expect(said).toContain("Best install the packages of a release, which bring theirs (docs/install.md)");
    },
  );
});

/** Runs `npm start` on free ports of this machine. */
class Start {
  said = "";
  readonly #process: ChildProcess;

  constructor(host: DebianHost) {
    const listeners = ["API", "PORTAL", "CONSOLE", "NODES", "DATA", "OPS", "AGENT_OPS"];
    const ports = listeners.map((name) => `WEICHE_${name}_LISTEN=127.0.0.1:0`).join(" ");
    this.#process = host.start(`cd weiche && ${ports} npm start`, user);
    for (const stream of [this.#process.stdout!, this.#process.stderr!])
      stream.on("data", (chunk: Buffer) => (this.said += chunk.toString()));
  }

  /** Throws with its whole output if it has ended. */
  says(text: string): boolean {
    if (this.#process.exitCode !== null) throw new Error(this.said);
    return this.said.includes(text);
  }

  async end(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }
}
