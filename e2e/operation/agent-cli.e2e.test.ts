/** Tests the real command `weiche-agent` against a real agent with simulated engines. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { profileSchema } from "@weiche/node-agent/src/profile/profile-file.ts";
import type { AgentStatus } from "@weiche/node-agent/src/status/status.ts";
import { checkYaml } from "@weiche/shared/files/config-file.ts";
import { makeAuthority, makeCertificate } from "@weiche/router/src/certificates/certificate-folder.ts";
import { simulatedNvidiaSmi } from "@weiche/node-agent/test/engines/engines-on-host.ts";
import { RunningProgram, until } from "../cluster/cluster.ts";

const root = join(import.meta.dirname, "../..");
const bin = join(root, "node-agent/bin/weiche-agent.js");
const directory = mkdtempSync(join(tmpdir(), "weiche-cli-"));
const speeds = { "itl-ms": 6, "itl-per-running-ms": 0.1, "itl-per-thousand-ms": 0.05, "ttft-per-thousand-ms": 400 };
let agent: RunningProgram;

beforeAll(async () => {
  const simulated = [process.execPath, join(root, "e2e/sim-engine/main.ts"), "--port", "{port}"];
  const engine = (model: string, startMs: number, more: readonly string[] = [], settings = {}) => ({
    ...{ model, dialect: "vllm", ...settings },
    command: [...simulated, "--model", model, "--start-ms", String(startMs), ...more],
  });
  const speed = Object.entries(speeds).flatMap(([option, value]) => [`--${option}`, String(value)]);
  const sleeps = { sleep: { level: 1 }, maxConcurrent: 4 };
  const engines = [
    ...[engine("quick", 0), engine("slow", 3_000), engine("paced", 500, speed)],
    engine("sleepy", 1_500, [...speed, "--sleep-ms", "300", "--wake-ms", "600"], sleeps),
  ];
  const slot = { name: "a", minResidencySeconds: 0, engines };
  const making = { folder: join(directory, "ca"), nowMs: Date.now() };
  makeAuthority(making);
  makeCertificate({ ...making, days: 20 }, "node", ["gpu-1"]);
  const tls = { cert: "ca/node-gpu-1.pem", key: "ca/node-gpu-1.key", ca: "ca/ca.pem" };
  writeFileSync(join(directory, "agent.yaml"), JSON.stringify({ node: "gpu-1", tls, slots: [slot] }));
  agent = await RunningProgram.start("node-agent/src/main.ts", ["--stop-engines"], {
    WEICHE_DATA_DIR: directory,
    WEICHE_AGENT_CONFIG: join(directory, "agent.yaml"),
    WEICHE_AGENT_OPS_LISTEN: "127.0.0.1:0",
    WEICHE_NODES_LISTEN: "127.0.0.1:9",
  });
});

afterAll(async () => {
  await agent.stop();
  rmSync(directory, { recursive: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function command(...args: readonly string[]): Promise<Ended> {
  const env = { ...process.env, PATH: `${directory}:${process.env["PATH"]}`, WEICHE_DATA_DIR: directory };
  try {
    return { code: 0, ...(await promisify(execFile)(process.execPath, [bin, ...args], { env, cwd: directory })) };
  } catch (error) {
    return error as Ended;
  }
}

async function activate(model: string): Promise<void> {
  expect(await command("prewarm", model)).toMatchObject({ code: 0 });
  await until(`${model} to be active`, async () => {
    const { slots } = JSON.parse((await command("status", "--json")).stdout) as {
      slots: { state: string; active?: string }[];
    };
    return slots[0]!.state === "active" && slots[0]!.active === model;
  });
}

/** Waits until the slot is as it was: this model is active, and nothing runs or waits. */
async function untilIdle(model: string): Promise<void> {
  await until(`${model} to be active again`, async () => {
    const { slots } = JSON.parse((await command("status", "--json")).stdout) as AgentStatus;
    const [{ state, active, running, waiting }] = slots as [AgentStatus["slots"][0]];
    return state === "active" && active === model && running === 0 && Object.keys(waiting).length === 0;
  });
}

describe("weiche-agent", () => {
  test("prints the node's state as a table and as JSON", async () => {
    const { code, stdout } = await command("status");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^node gpu-1 \(.+\) · no router\n\nSLOT +STATE +ACTIVE/);
    expect(stdout).not.toContain("\u001b");
    const json: unknown = JSON.parse((await command("status", "--json")).stdout);
    expect(json).toMatchObject({ node: "gpu-1", maintenance: false, admitting: true, slots: [{ name: "a" }] });
  });

  test("shows how far a switch is while it lasts", async () => {
    await activate("slow");
    await activate("quick");
    const env = { ...process.env, WEICHE_DATA_DIR: directory };
    const watch = spawn(process.execPath, [bin, "status", "--watch"], { env, stdio: ["ignore", "pipe", "inherit"] });
    let seen = "";
    watch.stdout.on("data", (text: Buffer) => (seen += text.toString()));
    try {
      await until("the view during the switch", () => seen.includes("quick"));
      await activate("slow");
      await until("the view after the switch", () => /active +slow/.test(seen));
    } finally {
      watch.kill();
      await once(watch, "exit");
    }
    expect(seen).toMatch(/█+░* \d+\.\d s, usually \d+\.\d s/);
  });

  test("shows each engine with its process and memory, and the host's memory", async () => {
    const { engines, host } = JSON.parse((await command("status", "--json")).stdout) as AgentStatus;
    expect(engines).toMatchObject([
      { slot: "a", model: "slow", state: "awake", launcher: "process", restarts: 0, pid: expect.any(Number) as number },
    ]);
    expect(engines[0]!.hostMemoryBytes).toBeGreaterThan(1_000_000);
    expect(engines[0]!.ageSeconds).toBeGreaterThanOrEqual(0);
    expect(host!.memoryTotalBytes).toBe(totalmem());
    const { stdout } = await command("status");
    expect(stdout).toMatch(new RegExp(`^a +slow +awake +${engines[0]!.pid} +`, "m"));
    expect(stdout).toMatch(/^host +\d+\.\d GiB/m);
  });

  test("measures an engine within a few percent, writes its profile to a file and gives the slot back", async () => {
    await activate("quick");
    const measuring = command("profile", "paced");
    await until("requests of the profile to run", async () => {
      const { slots } = JSON.parse((await command("status", "--json")).stdout) as AgentStatus;
      return slots[0]!.running > 0;
    });
    expect(await command("profile", "quick")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/requests? runs? or waits? .* add --while-serving/) as string,
    });
    expect(await command("profile", "quick", "--while-serving")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("another profile is being measured") as string,
    });
    const { code, stderr, stdout } = await measuring;
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^1 of 11: start paced\n/) as string]);
    expect(stdout).toMatch(/^paced\.profile\.yaml: vllm 0\.32\.0 on no known GPU\n {2}a step takes \d/);
    const text = readFileSync(join(directory, "paced.profile.yaml"), "utf8");
    const { value, mistakes } = checkYaml(text, profileSchema);
    expect(mistakes).toEqual([]);
    const { points, startSeconds, step, stopSeconds, ...profile } = value!;
    expect(profile).toMatchObject({ model: "paced", engine: "vllm", version: "0.32.0", gpus: [], places: 256 });
    expect(points.map(({ running }) => running)).toEqual([1, 4, 16, 64, 1, 4, 16, 64]);
    for (const { running, contextTokens, stepMs } of points) {
      const contextMs = (speeds["itl-per-thousand-ms"] * contextTokens) / 1_000;
      const trueMs = speeds["itl-ms"] + speeds["itl-per-running-ms"] * running + contextMs;
      expect(Math.abs(stepMs / trueMs - 1)).toBeLessThan(0.1);
    }
    expect(step.baseMs).toBeGreaterThan(0);
    expect(Math.abs(profile.prefillTokensPerSecond! / 2_500 - 1)).toBeLessThan(0.15);
    expect(startSeconds).toBeGreaterThan(0.5);
    expect(stopSeconds).toBeGreaterThan(0);
    expect(profile.wakeSeconds).toBeUndefined();
    await untilIdle("quick");
  });

  test("measures the start of an engine that sleeps, how long it takes to fall asleep, and to wake", async () => {
    await activate("quick");
    const profile = async () => {
      expect(await command("profile", "sleepy")).toMatchObject({ code: 0 });
      const { value } = checkYaml(readFileSync(join(directory, "sleepy.profile.yaml"), "utf8"), profileSchema);
      return value!;
    };
    const first = await profile();
    expect(first.startSeconds).toBeGreaterThan(1.5);
    for (const { stopSeconds, wakeSeconds } of [first, await profile()]) {
      expect(stopSeconds).toBeGreaterThan(0.3);
      expect(wakeSeconds).toBeGreaterThan(0.6);
      // The time of the start must not be taken for that of a wake.
      expect(wakeSeconds).toBeLessThan(1.5);
    }
    await untilIdle("quick");
    // The engine sleeps now, so that it wakes where it started before.
    expect((await profile()).startSeconds).toBeUndefined();
  });

  test.each([
    ["the engine answers", "paced", /^4 of 11: /m, /a step takes [\d.]+ ms[^]*start [\d.]+ s, stop not measured/],
    ["the engine starts", "slow", /^1 of 11: start slow/m, /nothing is measured yet\n$/],
  ])("Ctrl-C while %s shows what is known, writes no file, and gives the slot back", async (_, model, at, known) => {
    await activate("quick");
    const env = { ...process.env, WEICHE_DATA_DIR: directory };
    const profile = spawn(process.execPath, [bin, "profile", model, "--out", "stopped.yaml"], { env, cwd: directory });
    const said = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) profile[name].on("data", (text: Buffer) => (said[name] += text));
    await until("the measurement to go on", () => at.test(said.stderr));
    const exit = once(profile, "exit");
    profile.kill("SIGINT");
    expect(await exit).toEqual([130, null]);
    expect(said.stderr).toContain("weiche-agent: stopped before everything was measured\n");
    expect(said.stdout).toMatch(/^known so far, and not written to stopped\.yaml: /);
    expect(said.stdout).toMatch(known);
    expect(existsSync(join(directory, "stopped.yaml"))).toBe(false);
    await untilIdle("quick");
  });

  test("names the model of a profile that no slot of the node serves", async () => {
    expect(await command("profile", "nobody")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no slot of this node serves "nobody"') as string,
    });
  });

  test("turns maintenance on and off", async () => {
    expect((await command("maintenance", "on")).code).toBe(0);
    expect((await command("status")).stdout).toContain("in maintenance");
    expect((await command("maintenance", "off")).code).toBe(0);
    expect((await command("status")).stdout).not.toContain("in maintenance");
  });

  test("returns an exit code for each reason to do nothing", async () => {
    expect(await command("prewarm", "nobody")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("nobody") as string,
    });
    expect((await command("maintenance", "perhaps")).code).toBe(2);
    expect(await command("--data-dir", join(directory, "elsewhere"), "status")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("no agent found") as string,
    });
  });

  test("checks a configuration with a line per finding; warnings exit with 0, mistakes with 1", async () => {
    const engine = "{ model: m, dialect: vllm, command: [/nowhere/vllm, --host, 127.0.0.1, --port, '{port}'] }";
    writeFileSync(join(directory, "warned.yaml"), `node: n\nslots:\n  - name: a\n    engines:\n      - ${engine}\n`);
    expect(await command("check-config", "warned.yaml")).toMatchObject({
      code: 0,
      stdout: 'warned.yaml:5: warning: model "m": the program /nowhere/vllm does not exist\nwarned.yaml is fine\n',
    });
    writeFileSync(join(directory, "wrong.yaml"), "node: n\nslots:\n  - name: a\n    engine: []\n");
    const { code, stdout } = await command("check-config", "wrong.yaml");
    expect([code, stdout.split("\n")[1]]).toEqual([
      1,
      'wrong.yaml:4: unknown key "slots.0.engine"; did you mean "engines"?',
    ]);
  });

  test("warns of a certificate that expires soon, at the start, in status and in check-config", async () => {
    const lines = agent.output.filter((line) => line.includes("expires soon"));
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: "warn", use: "links", file: "cert", path: join(directory, "ca/node-gpu-1.pem") },
    ]);
    const { certificates } = JSON.parse((await command("status", "--json")).stdout) as AgentStatus;
    expect(certificates.map(({ use, file, daysLeft }) => [use, file, Math.round(daysLeft / 10)])).toEqual([
      ["links", "cert", 2],
      ["links", "ca", 365],
    ]);
    expect((await command("status")).stdout).toMatch(/^links +\S+node-gpu-1\.pem +20\d\d-\d\d-\d\d +(19|20)$/m);
    const { code, stdout } = await command("check-config", "agent.yaml");
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^agent\.yaml:1: warning: .*gpu-1\.pem expires at /m)]);
  });

  test("reports what is wrong with certificate, key and token", async () => {
    const slots =
      "slots: [{ name: a, engines: [{ model: m, dialect: openai, launcher: external, url: 'http://127.0.0.1:1' }] }]";
    const lines = (tls: string, more = "") => [
      "node: gpu-1",
      "tls:",
      ...tls.split(" ").map((each) => `  ${each.replace("=", ": ")}`),
      more,
      slots,
      "",
    ];
    const check = async (...given: Parameters<typeof lines>) => {
      writeFileSync(join(directory, "tls.yaml"), lines(...given).join("\n"));
      const { code, stdout } = await command("check-config", "tls.yaml");
      return [code, stdout.replaceAll(`${directory}/`, "").split("\n")[0]];
    };
    const making = { folder: join(directory, "ca"), nowMs: Date.now() };
    for (const node of ["gpu-2", "gpu-1.example"]) makeCertificate(making, "node", [node]);
    expect(await check("cert=ca/node-gpu-2.pem key=ca/node-gpu-2.key ca=ca/ca.pem")).toEqual([
      1,
      'tls.yaml:3: ca/node-gpu-2.pem lacks the name "gpu-1", so routers would refuse it',
    ]);
    expect(await check("cert=ca/node-gpu-1.pem key=ca/node-gpu-2.key ca=ca/ca.pem")).toEqual([
      1,
      "tls.yaml:4: ca/node-gpu-2.key is not the key of ca/node-gpu-1.pem",
    ]);
    const [handedOver] = await check("cert=ca/node-gpu-1.pem key=/run/credentials/x/node.key ca=ca/nowhere.pem");
    expect(handedOver).toBe(0); // a missing file on this host is a warning
    writeFileSync(join(directory, "token"), "short\n", { mode: 0o600 });
    const right = "cert=ca/node-gpu-1.pem key=ca/node-gpu-1.key ca=ca/ca.pem";
    expect(await check(right, "ops: { tokenFile: token }")).toEqual([
      1,
      expect.stringMatching(/^tls\.yaml:6: token must hold 16 to 256 letters/),
    ]);
  });

  test("reports a mistake if the host's GPU can never hold a model", async () => {
    await simulatedNvidiaSmi(directory);
    const engine = "{ model: m, dialect: openai, launcher: external, url: 'http://127.0.0.1:1', memoryBytes: BYTES }";
    const file = (memoryBytes: number) =>
      `node: n\nslots:\n  - name: a\n    gpus: [0]\n    engines:\n      - ${engine.replace("BYTES", `${memoryBytes}`)}\n`;
    const totalBytes = 80_000 * 2 ** 20;
    writeFileSync(join(directory, "full.yaml"), file(totalBytes));
    expect(await command("check-config", "full.yaml")).toMatchObject({ code: 0, stdout: "full.yaml is fine\n" });
    writeFileSync(join(directory, "over.yaml"), file(totalBytes + 1));
    const { code, stdout } = await command("check-config", "over.yaml");
    const message = `memoryBytes is ${totalBytes + 1}, but the slot's GPUs have ${totalBytes}`;
    expect([code, stdout.split("\n")]).toEqual([
      1,
      expect.arrayContaining([`over.yaml:6: model "m" never fits: ${message}`]),
    ]);
  });
});
