/** Messages of a real agent process to systemd. The test's `systemd-notify` records them with their times. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";

const root = join(import.meta.dirname, "../../..");
const watchdogMs = 200;
let directory: string;
let child: ChildProcess | undefined;

beforeEach(() => {
  directory = temporaryDirectory();
  const program = join(directory, "systemd-notify");
  writeFileSync(program, `#!/bin/sh\necho "$(date +%s%3N) $1" >>"$NOTIFY_SOCKET"\n`);
  chmodSync(program, 0o755);
});

afterEach(async () => {
  if (child && child.exitCode === null && child.signalCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

function start(args: readonly string[], more: NodeJS.ProcessEnv = {}): ChildProcess {
  const env = {
    ...process.env,
    PATH: `${directory}:${process.env["PATH"]}`,
    NOTIFY_SOCKET: join(directory, "said"),
    WATCHDOG_USEC: String(watchdogMs * 1_000),
    ...more,
  };
  child = spawn(process.execPath, args, { env, cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  return child;
}

interface Said {
  readonly atMs: number;
  readonly what: string;
}

function said(): readonly Said[] {
  const file = join(directory, "said");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
  return lines.map((line) => ({ atMs: Number(line.split(" ")[0]), what: line.slice(line.indexOf(" ") + 1) }));
}

test("the agent reports that it loads, is ready, lives and stops", async () => {
  const config = join(directory, "agent.yaml");
  const engine = { model: "m", dialect: "openai", launcher: "external", url: "http://127.0.0.1:9" };
  writeFileSync(config, JSON.stringify({ node: "n", slots: [{ name: "s", engines: [engine] }] }));
  const agent = start(["node-agent/src/main.ts"], {
    WEICHE_AGENT_CONFIG: config,
    WEICHE_DATA_DIR: join(directory, "data"),
    WEICHE_AGENT_OPS_LISTEN: "127.0.0.1:0",
    WEICHE_NODES_LISTEN: "127.0.0.1:9",
    WEICHE_LOG_LEVEL: "fatal",
  });
  await vi.waitFor(() => expect(said().filter(({ what }) => what === "WATCHDOG=1").length).toBeGreaterThan(3), 30_000);
  agent.kill("SIGTERM");
  expect(await once(agent, "exit")).toEqual([0, null]);
  const [first, second, ...rest] = said().map(({ what }) => what);
  // A child sends each message, so a watchdog message may arrive after the last one.
  expect([first, second, rest.find((what) => what !== "WATCHDOG=1")]).toEqual([
    "STATUS=taking over the engines of an earlier agent",
    "READY=1",
    "STOPPING=1",
  ]);
});

test("a blocked event loop sends no watchdog message", async () => {
  const program = `
    import { systemClock } from "./shared/src/time/clock.ts";
    import { openServiceManager } from "./shared/src/program/systemd-notify.ts";
    const service = openServiceManager(process.env, process.pid, systemClock);
    service.ready("ready");
    setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500), 500);
    setTimeout(() => process.exit(0), 2_500);`;
  expect(await once(start(["--input-type=module", "-e", program]), "exit")).toEqual([0, null]);
  const fedMs = said().flatMap(({ what, atMs }) => (what === "WATCHDOG=1" ? [atMs] : []));
  const gaps = fedMs.slice(1).map((atMs, index) => atMs - fedMs[index]!);
  expect(Math.max(...gaps)).toBeGreaterThan(1_000);
  expect(gaps.filter((gap) => gap <= 1_000).length).toBeGreaterThan(3);
});
