import { beforeEach, expect, test } from "vitest";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { publishGauges, type GaugedParts } from "./gauges.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { SlotState } from "./nodes/node-view.ts";
import { NodeRegistry } from "./nodes/registry.ts";

const node = asId<NodeId>("gpu-1");
const hello = { node, bootId: "1", agentVersion: "0", slots: [] };
const report = { slots: [], maintenance: false, admitting: true };
let registry: NodeRegistry;
let metrics: Metrics;
let nowMs: number;
let parts: { -readonly [Part in Exclude<keyof GaugedParts, "nodes">]: GaugedParts[Part] };

beforeEach(() => {
  registry = new NodeRegistry();
  metrics = createMetrics(() => 0);
  nowMs = 0;
  parts = {
    database: { poolUses: () => [{ pool: "usage", used: 1, idle: 0, max: 2, waiting: 4 }] },
    keys: { ageMs: 1_500 },
    catalogue: { readAtMs: 1_800_000_000_000, isNewest: true },
    certificates: { api: undefined, nodes: undefined, ops: undefined },
    routers: { all: () => [], own: "" },
    mail: { pending: 3 },
    limitStore: undefined,
  };
});

/** Returns the samples of the router's metrics whose name begins with the prefix. */
async function samples(prefix: string): Promise<string[]> {
  const nodes = { details: () => registry.details(nowMs), nowMs: () => nowMs };
  publishGauges(metrics, { ...parts, nodes });
  const begin = `weiche_router_${prefix}`;
  const lines = (await metrics.registry.metrics()).split("\n").filter((line) => line.startsWith(begin));
  return lines.map((line) => line.slice("weiche_router_".length));
}

async function state(): Promise<string | undefined> {
  const ones = (await samples("node_state")).filter((line) => line.endsWith(" 1"));
  expect(ones.length).toBeLessThan(2);
  return /state="([\w-]+)"/.exec(ones[0] ?? "")?.[1];
}

test("a node has exactly one state and the age of its last report until the router forgets the node", async () => {
  expect(await samples("node_")).toEqual([]);
  const link = registry.linkUp(hello, 0);
  registry.connectionUp(node);
  expect(await state()).toBe("silent");
  expect(await samples("node_report_age")).toEqual([]);
  link.report(report, 0);
  expect(await state()).toBe("live");
  nowMs = 2_500;
  expect(await samples("node_report_age")).toEqual(['node_report_age_seconds{node="gpu-1"} 2.5']);
  link.report({ ...report, admitting: false }, nowMs);
  expect(await state()).toBe("not-admitting");
  link.report({ ...report, maintenance: true }, nowMs);
  expect(await state()).toBe("maintenance");
  nowMs += 3_001;
  expect(await state()).toBe("silent");
  registry.connectionDown(node);
  link.down(nowMs);
  expect(await state()).toBe("gone");
  expect(await samples("node_state")).toHaveLength(5);
  expect(await samples("node_link_up")).toEqual(['node_link_up{node="gpu-1"} 0']);
  expect(await samples("node_maintenance")).toEqual(['node_maintenance{node="gpu-1"} 1']);
  nowMs += 3_600_001;
  expect([await samples("node_"), await samples("data_sessions")]).toEqual([[], []]);
});

test("gauges show whether a node is linked and how many data connections it has", async () => {
  const link = registry.linkUp(hello, 0);
  for (let n = 0; n < 3; n++) registry.connectionUp(node);
  const both = async () => [...(await samples("node_link_up")), ...(await samples("data_sessions"))];
  expect(await both()).toEqual(['node_link_up{node="gpu-1"} 1', 'data_sessions{node="gpu-1"} 3']);
  registry.connectionDown(node);
  link.down(nowMs);
  expect(await both()).toEqual(['node_link_up{node="gpu-1"} 0', 'data_sessions{node="gpu-1"} 2']);
});

test("the trouble of a slot with a model decreases while no request comes", async () => {
  const slot = asId<SlotName>("a");
  const model = asId<ModelId>("m");
  const idle = { name: slot, state: SlotState.ACTIVE, running: 0, runningOfRouter: 0, waiters: [], stateAgeMs: 0 };
  const link = registry.linkUp({ ...hello, slots: [{ name: slot, models: [model] }] }, 0);
  link.report({ ...report, slots: [idle] }, 0);
  expect(await samples("slot_trouble")).toEqual([]);
  for (let time = 0; time < 3; time++)
    registry.began({ node, slot, model, account: asId("x"), bodyBytes: 1 }, 0)({ outcome: "failed" }, 0);
  const series = 'slot_trouble{node="gpu-1",slot="a",model="m",kind="failing"}';
  expect(await samples("slot_trouble")).toEqual([`${series} 0.578125`]);
  nowMs = 300_000;
  expect(await samples("slot_trouble")).toEqual([`${series} 0.2890625`]);
});

test("gauges show the database connections and waiting statements of each pool", async () => {
  expect(await samples("database_connections")).toEqual([
    'database_connections{pool="usage",state="used"} 1',
    'database_connections{pool="usage",state="idle"} 0',
    'database_connections_max{pool="usage"} 2',
  ]);
  expect(await samples("database_waiting")).toEqual(['database_waiting{pool="usage"} 4']);
});

test("gauges show the age of known keys, the waiting mails and whether the catalogue is the newest", async () => {
  expect(await samples("key_cache_age")).toEqual(["key_cache_age_seconds 1.5"]);
  expect(await samples("mails_pending")).toEqual(["mails_pending 3"]);
  expect(await samples("catalogue")).toEqual([
    "catalogue_last_reload_successful 1",
    "catalogue_last_reload_success_timestamp_seconds 1800000000",
    "catalogues 0",
  ]);
  parts.catalogue = { ...parts.catalogue, isNewest: false };
  parts.mail = undefined;
  expect(await samples("catalogue_last_reload_successful")).toEqual(["catalogue_last_reload_successful 0"]);
  expect(await samples("mails_pending")).toEqual([]);
});
