/** Prometheus itself scrapes a router and its nodes as deploy/README.md says, and evaluates the alert rules. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { Cluster, until } from "../../cluster/cluster.ts";
import { promtool } from "../../cluster/promtool.ts";
import { catalogueOf, simEngine } from "../../cluster/sim-node.ts";

const folder = mkdtempSync(join(tmpdir(), "weiche-prometheus-"));
let cluster: Cluster;
let apiKey: string;
let prometheus: ChildProcess | undefined;
let url: string;

beforeAll(async () => {
  promtool(["--version"]); // says what to install where neither of both is there
  const agent = { slots: [{ name: "a", engines: [simEngine("model-a"), simEngine("model-b")] }] };
  cluster = await Cluster.start({
    catalogue: catalogueOf("model-a", "model-b"),
    agents: { "node-1": agent, "node-2": agent },
  });
  ({ apiKey } = await cluster.account());
  await startPrometheus(cluster.router.listen["ops"]!);
}, 120_000);
afterAll(async () => {
  const ended = prometheus && once(prometheus, "exit");
  prometheus?.kill();
  await ended;
  await cluster[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The rules wait for seconds where they would wait for minutes. */
async function startPrometheus(router: string): Promise<void> {
  const rules = readFileSync(join(import.meta.dirname, "../../../deploy/prometheus/rules.yml"), "utf8");
  writeFileSync(join(folder, "rules.yml"), rules.replaceAll(/for: \w+/g, "for: 5s"));
  const config = {
    global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
    rule_files: ["rules.yml"],
    scrape_configs: [
      { job_name: "weiche-router", static_configs: [{ targets: [router] }] },
      { job_name: "weiche-nodes", http_sd_configs: [{ url: `http://${router}/nodes`, refresh_interval: "1s" }] },
    ],
  };
  writeFileSync(join(folder, "prometheus.yml"), stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  url = `http://${address}/api/v1`;
  const flags = { "config.file": join(folder, "prometheus.yml"), "storage.tsdb.path": join(folder, "data") };
  const args = Object.entries({ ...flags, "web.listen-address": address }).map(([name, value]) => `--${name}=${value}`);
  prometheus = spawn("prometheus", args, { stdio: "ignore" });
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until("Prometheus to be ready", isReady);
}

interface RuleState {
  readonly name: string;
  readonly state: "inactive" | "pending" | "firing";
  readonly health: "ok" | "err" | "unknown";
  readonly lastError?: string;
}

async function rules(): Promise<readonly RuleState[]> {
  const { data } = (await (await fetch(`${url}/rules`)).json()) as {
    data: { groups: readonly { rules: readonly RuleState[] }[] };
  };
  return data.groups.flatMap((group) => group.rules);
}

/** Alerts about times, which fire where the machine of a test is busy with other things. */
const ofTimes = ["WeicheEventLoopSlow", "WeicheFirstByteSlow", "WeicheDatabaseSlow"];

async function firing(): Promise<readonly string[]> {
  const names = (await rules()).filter(({ state }) => state === "firing").map(({ name }) => name);
  return names.filter((name) => !ofTimes.includes(name)).toSorted((a, b) => (a < b ? -1 : 1));
}

/** How many series an expression has now. */
async function count(expression: string): Promise<number> {
  const asked = await fetch(`${url}/query?${new URLSearchParams({ query: expression }).toString()}`);
  return ((await asked.json()) as { data: { result: readonly unknown[] } }).data.result.length;
}

async function chat(model: string): Promise<number> {
  const asked = await fetch(`${cluster.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "sim:tokens=5" }] }),
  });
  await asked.text();
  return asked.status;
}

test("it finds the router and, through it, every node, and the rules can be evaluated", async () => {
  await until("all targets to be up", async () => (await count('up{job=~"weiche-.*"} == 1')) === 3);
  for (let n = 0; n < 10; n++) expect(await chat(n % 2 === 0 ? "model-a" : "model-b")).toBe(200);
  await until("every rule to be evaluated", async () => (await rules()).every(({ health }) => health !== "unknown"));
  expect((await rules()).filter(({ health }) => health !== "ok")).toEqual([]);
  expect(await count('weiche_agent_slot_active_model{node="node-1",instance="node-1"}')).toBe(2);
  expect(await count("weiche_build_info")).toBe(3);
});

test("a system that is well fires nothing", async () => {
  const usage = 'sum(weiche_router_usage_records_total{result="committed"}) >= 10';
  await until("usage to be committed and scraped", async () => (await count(usage)) === 1);
  expect(await firing()).toEqual([]);
});

test("a node that is killed is told of, and no longer once it is back", { timeout: 90_000 }, async () => {
  const agent = cluster.agents.get("node-2")!;
  agent.kill("SIGKILL");
  await agent.exited();
  await until("the alert to fire", async () => (await firing()).includes("WeicheNodeSilent"));
  await cluster.startAgent("node-2");
  await until("all alerts to fall silent", async () => (await firing()).length === 0);
  expect(await count('up{instance="node-2"}')).toBe(1);
});

test("a node that is left in maintenance and a wrong catalogue are told of, and no longer once they are put right", async () => {
  await cluster.weiche("node", "maintenance", "node-2", "on");
  const file = join(cluster.directory, "catalogue.yaml");
  const right = readFileSync(file, "utf8");
  writeFileSync(file, "- { id: 7 }\n");
  await expect(cluster.weiche("catalogue", "reload")).rejects.toThrow("catalogue.yaml");
  const both = ["WeicheCatalogueWrong", "WeicheMaintenanceForgotten"];
  await until("both alerts to fire", async () => (await firing()).join() === both.join());
  writeFileSync(file, right);
  await cluster.weiche("catalogue", "reload");
  await cluster.weiche("node", "maintenance", "node-2", "off");
  await until("both to fall silent", async () => (await firing()).length === 0);
});
