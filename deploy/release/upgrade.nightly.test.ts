/** Upgrades a host to the next version and back with packages under load. Its clients get complete answers. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { until } from "../../e2e/cluster/cluster.ts";
import type { SeenAnswer } from "./client-load.ts";
import { askOnce, configure, openAccount } from "./configured-host.ts";
import { DebianHost, needsHost } from "./debian-host.ts";
import { root } from "./lock-file.ts";
import { buildRelease, currentRelease } from "./release.ts";

const minutes = 60_000;
const clients = 4;
const folder = mkdtempSync(join(tmpdir(), "weiche-upgrade-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const release = currentRelease();
const nextVersion = `${release.version}.1`;

/** Builds the packages of this checkout, and of a newer version with one more migration. */
async function buildBoth(): Promise<Record<"now" | "next", readonly string[]>> {
  const migration = join(folder, "9999-shades.sql");
  const statements = [
    "alter table accounts add column shade text not null default 'red';",
    "create table shades (name text primary key);",
  ];
  writeFileSync(migration, statements.join("\n"));
  const packagesOf = (files: readonly string[]) => files.filter((file) => file.endsWith(".deb"));
  const now = await buildRelease(join(folder, "now"), release);
  const following = { ...release, version: nextVersion, moreMigrations: [migration] };
  const next = await buildRelease(join(folder, "next"), following);
  return { now: packagesOf(now), next: packagesOf(next) };
}

test(
  "an upgrade and its rollback finish running answers, keep the engine, and bill what clients received [G5]",
  { timeout: 18 * minutes, ...needsHost() },
  async () => {
    const packages = await buildBoth();
    await using host = await DebianHost.make(join(folder, "debian"), "bookworm");
    await host.install(host.bring("packages", packages.now));
    await host.boot();
    await configure(host);
    await host.run("systemctl enable --now weiche-router weiche-node-agent");
    const account = await openAccount(host);
    const first = (await askOnce(host, account.key)) as { readonly usage: NonNullable<SeenAnswer["usage"]> };
    const load = await ClientLoad.start(host, account.key);
    const engine = enginePid(host);

    for (const [version, files] of [
      [nextVersion, host.bring("packages", packages.next)],
      [release.version, packages.now.map((file) => `/packages/${basename(file)}`)],
    ] as const) {
      await load.moreAnswers();
      const { stoppingAtMs, readyAtMs } = await change(host, version, files);
      await load.moreAnswers();
      const seen = load.seen().filter(({ endedAtMs }) => endedAtMs >= stoppingAtMs);
      const running = seen.filter(({ sentAtMs }) => sentAtMs < stoppingAtMs);
      expect(running.map(({ ending }) => ending)).toEqual(running.map(() => "whole"));
      expect(running.length).toBeGreaterThan(0);
      const failed = seen.filter(({ ending }) => ending !== "whole");
      const lastFailureAtMs = Math.max(stoppingAtMs, ...failed.map(({ sentAtMs }) => sentAtMs));
      const afterMs = (atMs: number) => atMs - stoppingAtMs;
      console.log(
        `${version}: ${running.length} answers ran and ended, ready after ${afterMs(readyAtMs)} ms, ` +
          `${failed.length} requests failed, the last after ${afterMs(lastFailureAtMs)} ms`,
      );
      expect(lastFailureAtMs).toBeLessThan(readyAtMs + linkMsMax);
      expect(enginePid(host)).toBe(engine);
      const [node] = JSON.parse(await host.run("weiche nodes --json")) as { agentVersion: string }[];
      expect(node!.agentVersion).toBe(version);
      expect((await host.run("weiche --version")).trim()).toBe(version);
      const health = "require('node:http').get('http://127.0.0.1:9464/healthz', (r) => r.pipe(process.stdout))";
      expect(await host.run(`/usr/lib/weiche/node/bin/node -e "${health}"`)).toContain(version);
    }
    // The older version runs on the newer schema and logs it.
    const log = await host.run("journalctl -u weiche-router -o cat");
    const lines = log.split("\n").filter((line) => line.includes("a newer version has migrated the database"));
    expect(lines.map((line) => (JSON.parse(line) as { migrations: unknown }).migrations)).toEqual([["9999-shades"]]);

    const seen = await load.stop();
    // Every begun answer is complete. Other requests are refused or find no router.
    expect(seen.filter(({ ending, status }) => ending !== "whole" && status === 200)).toEqual([]);
    const whole = seen.filter(({ ending }) => ending === "whole");
    const usages = [first.usage, ...whole.map(({ usage }) => usage!)];
    const sum = (key: "prompt_tokens" | "completion_tokens") => usages.reduce((total, usage) => total + usage[key]!, 0);
    const received = {
      requests: usages.length,
      promptTokens: sum("prompt_tokens"),
      completionTokens: sum("completion_tokens"),
    };
    const totals = async () =>
      (JSON.parse(await host.run(`weiche usage --account ${account.id} --json`)) as { totals: typeof received }).totals;
    await expect.poll(async () => (await totals()).requests, { timeout: minutes }).toBe(received.requests);
    expect(await totals()).toMatchObject(received);
    console.log(received, seen.length - whole.length, "failed");
  },
);

/** Time after the router's readiness in which its node links and proves the engine. */
const linkMsMax = minutes;

/** When the old router was stopped and when the new one was ready, in ms since 1970. */
interface Restart {
  readonly stoppingAtMs: number;
  readonly readyAtMs: number;
}

/** Installs the packages by install.md, and waits until their services are ready. */
async function change(host: DebianHost, version: string, files: readonly string[]): Promise<Restart> {
  const units = ["weiche-router", "weiche-node-agent"];
  const pids = () => host.run(`systemctl show -P MainPID ${units.join(" ")}`);
  const before = (await pids()).split("\n").filter(Boolean);
  await host.run(`apt-get install -y --allow-downgrades ${files.join(" ")}`);
  await expect
    .poll(
      async () => {
        const now = (await pids()).split("\n").filter(Boolean);
        const states = await host.run(`systemctl is-active ${units.join(" ")} || true`);
        return `${states.trim().replaceAll("\n", " ")} ${now.some((pid) => before.includes(pid)) ? "old" : "new"}`;
      },
      { timeout: 3 * minutes, message: `${version} to run` },
    )
    .toBe("active active new");
  const instantOf = async (property: string) => {
    const said = await host.run(`systemctl show -P ${property} --timestamp=us+utc weiche-router`);
    return Date.parse(said.trim().replace(/^\w+ (\S+) (\S+) UTC$/, "$1T$2Z"));
  };
  return { stoppingAtMs: await instantOf("ActiveExitTimestamp"), readyAtMs: await instantOf("ActiveEnterTimestamp") };
}

/** Reads the engine's pid from the agent's handle, by which a new agent adopts the engine. */
function enginePid(host: DebianHost): number {
  return (JSON.parse(host.read("var/lib/weiche/agent/engines/a-tiny-chat.json")) as { pid: number }).pid;
}

class ClientLoad {
  readonly #host: DebianHost;
  readonly #unit = "client-load";

  private constructor(host: DebianHost) {
    this.#host = host;
  }

  /** Starts the clients as a unit of the host, with this checkout's program. */
  static async start(host: DebianHost, key: string): Promise<ClientLoad> {
    host.bring("root/load/deploy/release", [join(import.meta.dirname, "client-load.ts")]);
    host.bring("root/load/e2e/cluster", [join(root, "e2e/cluster/api-client.ts")]);
    host.write("root/load/package.json", '{ "type": "module" }');
    host.write("root/load/answers", "");
    const load = new ClientLoad(host);
    const program = "/root/load/deploy/release/client-load.ts http://127.0.0.1:8080/v1";
    const command = `/usr/lib/weiche/node/bin/node ${program} ${key} ${clients} /root/load/answers`;
    await host.run(`systemd-run --quiet --unit=${load.#unit} ${command}`);
    await load.moreAnswers();
    return load;
  }

  /** Returns the clients' answers so far. */
  seen(): readonly SeenAnswer[] {
    const lines = this.#host.read("root/load/answers").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as SeenAnswer);
  }

  /** Resolves when clients get complete answers (again). */
  async moreAnswers(): Promise<void> {
    const whole = () => this.seen().filter(({ ending }) => ending === "whole").length;
    const before = whole();
    await until("answers to be whole", () => whole() >= before + 2 * clients, 3 * minutes);
  }

  async stop(): Promise<readonly SeenAnswer[]> {
    await this.#host.run(`systemctl stop ${this.#unit}`);
    return this.seen();
  }
}
