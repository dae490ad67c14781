/**
 * Evaluates every expression of every dashboard and rule with a real Prometheus, over a cluster of real processes under
 * load. Each must return a number. Then faults cause alerts, which end with the faults. Engines, nvidia-smi and the
 * sensors of a host are simulated.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { publishMachine } from "@weiche/node-agent/src/metrics/machine-metrics.ts";
import { createMetrics } from "@weiche/node-agent/src/metrics/metrics.ts";
import { dashboards, expand } from "../../deploy/grafana/dashboards.ts";
import { askedSeries, readRules } from "../../deploy/prometheus/rules.ts";
import { ValkeyServer } from "@weiche/router/test/limits/valkey-server.ts";
import { Cluster, isAlive, reachableDirectory, until } from "../cluster/cluster.ts";
import { Prometheus, requireToken } from "./prometheus.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { postmasterOf } from "../cluster/usage-dump.ts";
import { Certificates } from "../links/link-ends.ts";

const ifRun = needs("promtool", "valkey-server");

const programs = reachableDirectory("weiche-programs-");
const faultFile = join(programs, "faults");
const certificates = new Certificates();
const quickly = { minResidencySeconds: 0, backoffSeconds: { min: 0.3, max: 0.6 } };
let store: ValkeyServer;
let cluster: Cluster;
let apiKey: string;
let blockedKey: string;
let prometheus: Prometheus;
let sensors: Server;

beforeAll(async () => {
  simulateNvidiaSmi();
  writeFileSync(faultFile, "crash:start\n");
  store = await ValkeyServer.start();
  const nodesTls = certificates.router("localhost", "127.0.0.1");
  const slot = (name: string, ...engines: object[]) => ({ ...quickly, name, engines });
  cluster = await Cluster.start({
    catalogue: catalogueOf("model-a", "model-b", "model-c", "model-d"),
    router: { nodes: { tls: nodesTls }, limits: { store: store.url, perIpPerSecond: 0 } },
    prepare: requireToken,
    environment: { PATH: `${programs}:${process.env["PATH"]}` },
    agents: {
      "node-1": {
        tls: certificates.node("node-1"),
        slots: [
          { ...slot("a", simEngine("model-a"), simEngine("model-b")), gpus: [0] },
          slot("c", simEngine("model-c", { "fault-file": faultFile })),
        ],
      },
      "node-2": { tls: certificates.node("node-2"), slots: [slot("d", simEngine("model-d"))] },
    },
  });
  ({ apiKey } = await cluster.account());
  const other = await cluster.account("Other");
  blockedKey = other.apiKey;
  await cluster.weiche("user", "block", other.userId);
  sensors = await startHostWithSensors();
  prometheus = await Prometheus.start({
    router: cluster.router.listen["ops"]!,
    dataDir: join(cluster.directory, "data"),
    scrapeSeconds: 1,
    nodes: { [`127.0.0.1:${(sensors.address() as AddressInfo).port}`]: "node-3" },
    // Alerts wait for seconds, and look back for seconds.
    hasten: (rules) => rules.replaceAll(/for: \w+/g, "for: 2s").replaceAll(/\[\d+[mh]\]/g, "[10s]"),
  });
}, 120_000);
afterAll(async () => {
  await (prometheus as Prometheus | undefined)?.[Symbol.asyncDispose]();
  sensors.close();
  await cluster[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  certificates[Symbol.dispose]();
  rmSync(programs, { recursive: true });
});

/** Simulates a GPU at its power limit. */
function simulateNvidiaSmi(): void {
  mkdirSync(programs, { recursive: true });
  const row = "0, GPU-0, 80000, 1000, 79000, 37, 61, 276.5, 0x0000000000000004";
  const script = `#!/bin/sh\ncase "$1" in --query-gpu=*) echo "${row}" ;; esac\n`;
  writeFileSync(join(programs, "nvidia-smi"), script);
  chmodSync(join(programs, "nvidia-smi"), 0o755);
}

/** Serves the metrics of an agent on a host with sensors. */
async function startHostWithSensors(): Promise<Server> {
  const { scrape, machine } = createMetrics();
  const frequencies = { cpuFrequencyLimitHertz: 2e9, cpuFrequencyMaxHertz: 4e9 };
  const traffic = { diskReadBytes: 1, diskWrittenBytes: 1, networkReceivedBytes: 1, networkSentBytes: 1 };
  const temperatures = [{ part: "cpu", celsius: 60 }] as const;
  const disk = { mount: "/srv", sizeBytes: 100, availableBytes: 50, inodes: 100, inodesFree: 50 };
  const fileSystems = [{ ...disk, holds: ["models"] as const }];
  const swap = { swapTotalBytes: 100, swapUsedBytes: 1 };
  scrape.onScrape(() => publishMachine(machine, { ...frequencies, ...traffic, ...swap, temperatures, fileSystems }));
  const server = createServer((_request, response) => {
    void scrape.metrics().then((text) => {
      const ofHost = text.split("\n").filter((line) => /^weiche_agent_host_(?!cpu_use|memory)/.test(line));
      response.setHeader("content-type", scrape.contentType).end(`${ofHost.join("\n")}\n`);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

/** Returns the status, or undefined if the connection was cut or nothing came within a few seconds. */
async function chat(model: string, steering = "tokens=5", key = apiKey): Promise<number | undefined> {
  try {
    const asked = await fetch(`${cluster.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: `sim:${steering}` }] }),
      signal: AbortSignal.timeout(5_000),
    });
    await asked.text();
    return asked.status;
  } catch {
    return undefined;
  }
}

/**
 * Repeats the work, at most twice a second to stay within the account's limits, until the returned function is called.
 */
function keep(work: () => Promise<unknown>): () => Promise<void> {
  let goesOn = true;
  const running = (async () => {
    while (goesOn) await Promise.all([work(), sleep(500)]);
  })();
  return async () => {
    goesOn = false;
    await running;
  };
}

/** Requests for both models of a slot, so that it switches, for a model that fails, and with a refused key. */
const load = () =>
  Promise.all([
    chat("model-a", "tokens=80,itl=20").then(() => chat("model-a")),
    chat("model-b", "tokens=80,itl=20").then(() => chat("model-b")),
    chat("model-c"),
    chat("model-d"),
    chat("model-d", "tokens=1", blockedKey),
  ]);

test(
  "each expression of each dashboard and recording rule, and each series of an alert, returns a number",
  ifRun,
  async () => {
    const { alerts, recorded } = readRules();
    const shown = Object.values(dashboards)
      .flatMap(({ panels = [] }) => panels)
      .flatMap((panel) =>
        "targets" in panel ? (panel.targets as unknown as readonly { readonly expr: string }[]) : [],
      )
      .map(({ expr }) => expr);
    const missing = new Set([
      ...shown.map((expr) => expand(expr, { rateInterval: "10s", range: "1m" })),
      ...recorded.flatMap(({ record, expr }) => [record, expr]),
      ...alerts.flatMap(({ expr }) => askedSeries(expr).map(({ selector }) => selector)),
    ]);
    expect(missing.size).toBeGreaterThan(140);
    for (const { expr } of alerts) await prometheus.values(expr); // throws for a wrong expression; most results are empty without faults
    await until("all targets to be scraped", async () => (await prometheus.count('up{job=~"weiche-.*"} == 1')) === 4);
    const stop = keep(load);
    try {
      await killDatabase(); // so that the panel of database errors has a value
      const ask = async () => {
        for (const expr of missing) if ((await prometheus.values(expr)).some(Number.isFinite)) missing.delete(expr);
        return missing.size === 0;
      };
      await until("a number for each expression", ask, 90_000).catch(() => {});
    } finally {
      await stop();
    }
    expect([...missing]).toEqual([]);
    expect((await prometheus.rules()).filter(({ health }) => health !== "ok")).toEqual([]);
  },
);

/** Kills the embedded server's process. The router starts another. */
async function killDatabase(): Promise<void> {
  const found = postmasterOf(cluster);
  if (!found || !isAlive(found.pid)) return;
  process.kill(found.pid, "SIGKILL");
  await until("the database to be dead", () => !isAlive(found.pid));
}

/** Bounds the size of the agent's files. The kernel then refuses longer files like a full disk does. */
function limitFiles(node: string, bytes: number | "unlimited"): void {
  const { pid } = cluster.agents.get(node)!;
  const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:`], { encoding: "utf8" });
  if (status !== 0) throw new Error(`prlimit: ${stderr}`);
}

async function allFallSilent(): Promise<void> {
  let firing: readonly string[] = [];
  const isSilent = async () => {
    firing = await prometheus.firing();
    return firing.length === 0;
  };
  await until("all alerts to fall silent", isSilent, 60_000).catch((error: Error) => {
    throw new Error(`${error.message}; these fire: ${firing.join(", ")}`);
  });
}

async function fires(...names: string[]): Promise<void> {
  let firing: readonly string[] = [];
  const all = async () => {
    firing = await prometheus.firing();
    return names.every((name) => firing.includes(name));
  };
  await until(`${names.join(", ")} to fire`, all).catch((error: Error) => {
    throw new Error(`${error.message}; these fire: ${firing.join(", ")}`);
  });
}

test(
  "alerts fire for an engine that does not start, an outbox on a full disk and an unreachable database, and end with the faults",
  ifRun,
  async () => {
    await until("model-d to answer", async () => (await chat("model-d")) === 200);
    const stops = ["model-c", "model-d"].map((model) => keep(() => chat(model)));
    const stopKilling = keep(killDatabase);
    limitFiles("node-2", 1);
    const ofSlot = ["WeicheEngineFailsAgain", "WeicheSlotFailed"];
    await fires(...ofSlot, "WeicheNodeNotAdmitting", "WeicheOutboxDiskFull", "WeicheDatabaseFailing");
    await stopKilling();
    limitFiles("node-2", "unlimited");
    rmSync(faultFile);
    await until(
      "both models to answer",
      async () => (await chat("model-c")) === 200 && (await chat("model-d")) === 200,
    );
    // Requests continue meanwhile. A few served requests end a slot's trouble, which would otherwise fade only in
    // minutes.
    await allFallSilent();
    for (const stop of stops) await stop();
    expect(await prometheus.count("weiche_router_key_cache_age_seconds < 10")).toBe(1);
  },
);
