/** Tests that a real Prometheus scrapes a router and its nodes as in docs/runbook.md and evaluates the alert rules. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { Cluster, until } from "../cluster/cluster.ts";
import { Prometheus, requireToken } from "./prometheus.ts";
import { simNodes } from "../cluster/sim-node.ts";

const ifRun = needs("promtool");

let cluster: Cluster;
let apiKey: string;
let prometheus: Prometheus;

beforeAll(async () => {
  cluster = await Cluster.start({
    ...simNodes(["model-a", "model-b"], ["node-1", "node-2"]),
    prepare: requireToken,
  });
  ({ apiKey } = await cluster.account());
  prometheus = await Prometheus.start({
    router: cluster.router.listen["ops"]!,
    dataDir: join(cluster.directory, "data"),
    scrapeSeconds: 2,
    // Alerts wait for seconds instead of minutes.
    hasten: (rules) => rules.replaceAll(/for: \w+/g, "for: 5s"),
  });
}, 120_000);
afterAll(async () => {
  await (prometheus as Prometheus | undefined)?.[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
});

const count = (expression: string) => prometheus.count(expression);
const rules = () => prometheus.rules();
const firing = () => prometheus.firing();

async function chat(model: string): Promise<number> {
  const asked = await fetch(`${cluster.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "sim:tokens=5" }] }),
  });
  await asked.text();
  return asked.status;
}

test("Prometheus finds the router and through it every node, and evaluates all rules", ifRun, async () => {
  await until("all targets to be up", async () => (await count('up{job=~"weiche-.*"} == 1')) === 3);
  for (let n = 0; n < 10; n++) expect(await chat(n % 2 === 0 ? "model-a" : "model-b")).toBe(200);
  await until("every rule to be evaluated", async () => (await rules()).every(({ health }) => health !== "unknown"));
  expect((await rules()).filter(({ health }) => health !== "ok")).toEqual([]);
  expect(await count('weiche_agent_slot_active_model{node="node-1",instance="node-1"}')).toBe(2);
  expect(await count("weiche_build_info")).toBe(3);
});

test("no alert fires for a healthy system [G3]", ifRun, async () => {
  const usage = 'sum(weiche_router_usage_records_total{result="committed"}) >= 10';
  await until("usage to be committed and scraped", async () => (await count(usage)) === 1);
  expect(await firing()).toEqual([]);
});

test("an alert fires for a killed node until it returns [G3]", { ...ifRun, timeout: 90_000 }, async () => {
  const agent = cluster.agents.get("node-2")!;
  agent.kill("SIGKILL");
  await agent.exited();
  await until("the alert to fire", async () => (await firing()).includes("WeicheNodeSilent"));
  await cluster.startAgent("node-2");
  await until("all alerts to fall silent", async () => (await firing()).length === 0);
  expect(await count('up{instance="node-2"}')).toBe(1);
});

test(
  "alerts fire for a node left in maintenance and a broken catalogue, and end when both are corrected",
  ifRun,
  async () => {
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
    await until("both alerts to end", async () => (await firing()).length === 0);
  },
);
