/** Checks all metrics of a real router and a real agent, with TLS on all ports, with Prometheus's own checker. */
import { get } from "node:https";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { declaredMetrics } from "../../docs/tools/metrics-page.ts";
import { Cluster, until, type RunningProgram } from "../cluster/cluster.ts";
import { parseMetrics, samplesOf, seriesOf } from "../cluster/metrics-text.ts";
import { promtool } from "../cluster/promtool.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { Certificates } from "../links/link-ends.ts";

const models = ["model-a", "model-b"];
const certificates = new Certificates();
let cluster: Cluster;
let apiKey: string;

beforeAll(async () => {
  const ofRouter = certificates.router("localhost", "127.0.0.1");
  const ofNode = certificates.node("node-1");
  const own = ({ cert, key }: typeof ofRouter) => ({ cert, key });
  cluster = await Cluster.start({
    catalogue: catalogueOf(...models),
    router: {
      ...{ tls: own(ofRouter), nodes: { tls: ofRouter }, ops: { tls: own(ofRouter) } },
      smtp: { url: "smtp://127.0.0.1:1", from: "Weiche <portal@example.com>" },
    },
    agents: {
      "node-1": {
        tls: ofNode,
        ops: { tls: own(ofNode) },
        slots: [{ name: "a", engines: models.map((model) => simEngine(model)) }],
      },
    },
  });
  ({ apiKey } = await cluster.account());
}, 90_000);
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  certificates[Symbol.dispose]();
});

async function ask(url: string, headers: Record<string, string> = {}): Promise<string> {
  const asked = get(url, { rejectUnauthorized: false, agent: false, headers });
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return text(response);
}

const scrape = ({ listen }: RunningProgram) => ask(`https://${listen["ops"]}/metrics`);
const programs = () => ({ router: cluster.router, agent: cluster.agents.get("node-1")! });
const samples = async (program: RunningProgram) => samplesOf(parseMetrics(await scrape(program)));

test("promtool accepts every metric except those of Node.js [G3]", needs("promtool"), async () => {
  const { router, agent } = programs();
  for (const program of [router, agent]) {
    const { said } = promtool(["check", "metrics"], await scrape(program));
    expect(said.split("\n").filter((line) => line !== "" && !/^(nodejs|process)_/.test(line))).toEqual([]);
  }
});

test("promtool rejects a name that breaks the conventions", needs("promtool"), () => {
  const { status, said } = promtool(
    ["check", "metrics"],
    "# HELP waits_ms Waits\n# TYPE waits_ms counter\nwaits_ms 1\n",
  );
  expect(status).not.toBe(0);
  expect(said).toContain("waits_ms");
});

test("before the first request every metric of the page exists unless it needs an event, a limit store, GPUs or sensors [G3]", async () => {
  const declared = await declaredMetrics();
  for (const which of ["router", "agent"] as const) {
    const families = parseMetrics(await scrape(programs()[which]));
    const without = declared[which].filter(({ name }) => (families.get(name)?.samples.size ?? 0) === 0);
    const unexplained = without.filter(({ name, type }) => type !== "histogram" && !needsMore.test(name));
    expect([which, unexplained.map(({ name }) => name)]).toEqual([which, []]);
  }
});
const needsMore =
  /^weiche_(router_limit_store_up$|router_slot_trouble$|agent_(gpu_|host_|slot_drain_closes_|sleeper_|engine_(window_missing|kv_cache_use|prefix_cache_hit)_))/;

test("each certificate in use has a metric with its expiry", async () => {
  const { router, agent } = programs();
  const expiries = async (program: RunningProgram) =>
    [...(await samples(program))].flatMap(([series, at]) => {
      const labels = /_certificate_expiry_timestamp_seconds\{file="(\w+)",use="(\w+)"\}/.exec(series);
      return labels && at > Date.now() / 1000 ? [`${labels[2]} ${labels[1]}`] : [];
    });
  expect((await expiries(router)).toSorted()).toEqual(["api cert", "nodes ca", "nodes cert", "ops cert"]);
  expect((await expiries(agent)).toSorted()).toEqual(["links ca", "links cert", "ops cert"]);
});

test("a router's metrics show the state of its nodes, database, keys and catalogue", async () => {
  const of = (name: string, labels = {}) => `weiche_router_${seriesOf(name, labels)}`;
  const now = await samples(cluster.router);
  expect(now.get(of("node_state", { node: "node-1", state: "live" }))).toBe(1);
  expect(now.get(of("node_report_age_seconds", { node: "node-1" }))).toBeLessThan(3);
  for (const [pool, max] of Object.entries({ general: 8, usage: 2, requests: 3 })) {
    expect(now.get(of("database_connections_max", { pool }))).toBe(max);
    expect(now.get(of("database_waiting", { pool }))).toBe(0);
  }
  expect(now.get(of("database_connections", { pool: "general", state: "idle" }))).toBeGreaterThan(0);
  expect(now.get(of("database_round_trip_seconds_count"))).toBeGreaterThan(0);
  expect(now.get(of("key_cache_age_seconds"))).toBeLessThan(60);
  expect(now.get(of("mails_pending"))).toBe(0);
  expect(now.get(of("catalogue_last_reload_successful"))).toBe(1);
  expect(now.get(of("catalogue_last_reload_success_timestamp_seconds"))).toBeGreaterThan(Date.now() / 1000 - 600);
});

test("refusals are counted by reason, starting at 0", async () => {
  const refusals = async (reason: string) =>
    (await samples(cluster.router)).get(seriesOf("weiche_router_refusals_total", { reason }));
  const models = `https://${cluster.router.listen["api"]}/v1/models`;
  expect([await refusals("invalid_api_key"), await refusals("rate_limit_minute")]).toEqual([0, 0]);
  await ask(models, { authorization: "Bearer sk-weiche-unknown" });
  await ask(models, { authorization: `Bearer ${apiKey}` });
  await until("the refusal to be counted", async () => (await refusals("invalid_api_key")) === 1);
  expect(await refusals("rate_limit_minute")).toBe(0);
});
