/** Builds and runs the router's container with buildah, on a Debian from debootstrap instead of a registry's image. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { DebianHost, needsHost } from "./debian-host.ts";
import { root } from "./lock-file.ts";
import { archOf } from "./processor.ts";
import { currentRelease } from "./release.ts";
import { buildTree } from "./tree.ts";

const minutes = 60_000;
const folder = mkdtempSync(join(tmpdir(), "weiche-container-"));
chmodSync(folder, 0o755); // the container's user needs access to the volumes below
const [etc, data] = [join(folder, "etc"), join(folder, "data")];
const volumes = ["--volume", `${etc}:/etc/weiche:ro`, "--volume", `${data}:/var/lib/weiche`];
/** Images and containers of this test only, without a daemon or a layered file system. */
const store = ["--root", join(folder, "store"), "--runroot", join(folder, "run"), "--storage-driver", "vfs"];
let running: ChildProcess | undefined;

afterAll(async () => {
  if (running?.exitCode === null && running.kill("SIGKILL")) await once(running, "exit"); // --kill-child: the router, too
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
});

async function buildah(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("buildah", [...store, ...args], { maxBuffer: 1 << 26 });
  return stdout.trim();
}

test(
  "the Containerfile makes an image whose router is healthy and answers the `weiche` command [G7]",
  { timeout: 15 * minutes, ...needs("buildah"), ...needsHost() },
  async () => {
    const file = join(import.meta.dirname, "Containerfile");
    await makeBase(/^FROM (\S+)$/m.exec(readFileSync(file, "utf8"))![1]!);
    const { version } = currentRelease();
    const tree = join(folder, "out", `weiche-${version}`);
    await buildTree(tree, currentRelease(), archOf(process.arch));
    const build = ["build", "--isolation", "chroot", "--pull-never", "--file", file, "--tag", "weiche-router"];
    await buildah(...build, "--build-arg", `TREE=${basename(tree)}`, join(folder, "out"));

    writeConfig();
    const container = await buildah("from", "--pull-never", "weiche-router");
    const { OCIv1: image } = JSON.parse(await buildah("inspect", container)) as Inspected;
    const { User: user, Entrypoint: entrypoint, Volumes: volumesOfImage } = image.config;
    expect(user).toBe("weiche-router");
    expect(volumesOfImage).toEqual({ "/var/lib/weiche": {} });
    // buildah would also mount its own volume there, and either of the two could be visible
    await buildah("config", "--volume", "/var/lib/weiche-", container);
    const { ops } = await listening(container, entrypoint);
    const health = await fetch(`http://${ops}/healthz`);
    expect(await health.text()).toBe(`ok ${version}\n`);
    const weiche = ["run", "--isolation", "chroot", ...volumes, container, "--", "weiche"];
    expect(await buildah(...weiche, "--version")).toBe(version);
    expect(JSON.parse(await buildah(...weiche, "models", "--json"))).toHaveLength(3);
    expect(readdirSync(join(data, "router"))).toContain("admin.sock");
  },
);

interface Inspected {
  readonly OCIv1: {
    readonly config: { readonly User: string; readonly Entrypoint: readonly string[]; readonly Volumes: object };
  };
}

/** Makes an image with the name in the Containerfile's first line. */
async function makeBase(name: string): Promise<void> {
  await using _host = await DebianHost.make(join(folder, "debian"), "bookworm");
  const container = await buildah("from", "scratch");
  await buildah("add", "--quiet", container, join(folder, "debian"), "/");
  await buildah("commit", "--quiet", "--rm", container, name);
}

/** Uses free ports, because chroot isolation shares the host's network. */
function writeConfig(): void {
  mkdirSync(etc);
  copyFileSync(join(root, "deploy/demo/catalogue.yaml"), join(etc, "catalogue.yaml"));
  const listeners = ["api", "portal", "console", "nodes", "data", "ops"].map((name) => [name, "127.0.0.1:0"]);
  const config = { catalogue: "catalogue.yaml", listen: Object.fromEntries(listeners) as object };
  writeFileSync(join(etc, "router.yaml"), JSON.stringify(config));
  mkdirSync(data, { mode: 0o700 });
  chownSync(data, 10001, 10001);
}

/** Runs the container's own command. Resolves with its addresses once it is ready. */
async function listening(container: string, entrypoint: readonly string[]): Promise<Record<string, string>> {
  const run = ["buildah", ...store, "run", "--isolation", "chroot", ...volumes, container, "--", ...entrypoint];
  const alone = ["--mount", "--pid", "--mount-proc", "--fork", "--kill-child"];
  running = spawn("unshare", [...alone, ...run], { stdio: ["ignore", "pipe", "pipe"] });
  const said: string[] = [];
  createInterface(running.stderr!).on("line", (line) => said.push(line));
  for await (const line of createInterface(running.stdout!)) {
    said.push(line);
    const { listen } = JSON.parse(line) as { listen?: Record<string, string> };
    if (listen) return listen;
  }
  throw new Error(`the router ended:\n${said.join("\n")}`);
}
