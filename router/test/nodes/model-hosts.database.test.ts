/**
 * Tests a node that claims a model which the catalogue assigns to other nodes. The node gets no prompt for this model.
 */
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, type ModelId, type NodeId } from "@weiche/shared/ids.ts";
import { loadRouterConfig } from "../../src/config/config.ts";
import { createRouter } from "../../src/context.ts";
import { place } from "../../src/nodes/placement.ts";
import { temporaryFolder } from "../db/database-fixture.ts";
import { bootId, helloOf, LinkClient } from "./link-client.ts";
import { NodeLinkRig } from "./node-link-rig.ts";

const [listed, liar] = [asId<NodeId>("gpu-1"), asId<NodeId>("gpu-2")];
const model = asId<ModelId>("m");
const active = { name: "s", state: "SLOT_STATE_ACTIVE", active_model: model, running: 0 };

async function claim(rig: NodeLinkRig, node: NodeId): Promise<void> {
  const client = await rig.linked(1, node);
  client.say({ load_report: { sequence: 1, slots: [active], admitting: true } });
  rig.registry.connectionUp(node);
  const now = () => systemClock.monotonicMs();
  await expect.poll(() => rig.registry.view(now()).find((view) => view.node === node)?.reachable).toBe(true);
}

function placed(rig: NodeLinkRig): string {
  const nowMs = systemClock.monotonicMs();
  const found = place({ model }, rig.registry.view(nowMs), nowMs, () => 0);
  return "node" in found ? found.node : found.refused;
}

const ignored = (rig: NodeLinkRig) => rig.told.filter(([event]) => event === "ignored");

test("its claim is ignored and logged once, and prompts go only to the nodes of the catalogue [A8]", async () => {
  await using rig = await NodeLinkRig.open();
  rig.foreign.add(`${liar} ${model}`);
  await claim(rig, liar);
  expect(placed(rig)).toBe("no_node_available");
  expect(ignored(rig)).toEqual([["ignored", liar, [model]]]);
  await claim(rig, listed);
  for (let n = 0; n < 20; n++) expect(placed(rig)).toBe(listed);
  rig.link.rulesChanged();
  expect(ignored(rig)).toHaveLength(1);
});

test("a catalogue that is read again takes a model from a node, or gives it one, at once", async () => {
  await using rig = await NodeLinkRig.open();
  await claim(rig, liar);
  expect([placed(rig), ignored(rig)]).toEqual([liar, []]);
  rig.foreign.add(`${liar} ${model}`);
  rig.link.rulesChanged();
  expect(placed(rig)).toBe("no_node_available");
  expect(ignored(rig)).toHaveLength(1);
  rig.foreign.clear();
  rig.link.rulesChanged();
  expect(placed(rig)).toBe(liar);
});

test("the router follows its catalogue, also if it changes while the router runs", async () => {
  using folder = temporaryFolder();
  const write = (name: string, content: string) => {
    writeFileSync(join(folder.path, name), content);
    return join(folder.path, name);
  };
  const factors = 'factors: [{ validFrom: "2026-01-01T00:00:00Z", factor: 1 }]';
  const nodesAre = (nodes: string) =>
    write("catalogue.yaml", `- { id: m, category: language, status: Beta, contextTokens: 100, ${nodes}${factors} }\n`);
  nodesAre("nodes: [gpu-1], ");
  const listen = ["api", "portal", "console", "nodes", "data", "ops"]
    .map((name) => `${name}: "127.0.0.1:0"`)
    .join(", ");
  const config = `catalogue: catalogue.yaml\ndataDir: data\nlogLevel: fatal\nshutdownAcceptSeconds: 0\nlisten: { ${listen} }\n`;
  const router = await createRouter(loadRouterConfig(write("router.yaml", config), {}));
  await using _closed = { [Symbol.asyncDispose]: () => router.close() };
  const portOf = (what: "nodes" | "ops") => Number(router.listen[what].split(":").at(-1));
  const agents = [listed, liar].map((name) => {
    const agent = new LinkClient(portOf("nodes"));
    agent.say(helloOf(name, bootId(1)));
    return agent;
  });
  const hosts = async () => {
    const models = JSON.parse(await get("/catalogue", { socketPath: join(folder.path, "data/router/admin.sock") })) as {
      nodes: { name: string }[];
    }[];
    return models[0]!.nodes.map(({ name }) => name).sort();
  };
  await Promise.all(agents.map((agent) => agent.welcomed));
  expect(await hosts()).toEqual([listed]);
  expect(await get("/metrics", { port: portOf("ops") })).toMatch(
    /^weiche_router_hosting_ignored_total\{node="gpu-2"\} 1$/m,
  );
  nodesAre("nodes: [gpu-2], ");
  await router.reloadCatalogue();
  expect(await hosts()).toEqual([liar]);
  nodesAre('nodes: ["gpu 1"], ');
  const isNewest = async () =>
    /^weiche_router_catalogue_last_reload_successful (.)$/m.exec(await get("/metrics", { port: portOf("ops") }))?.[1];
  expect(await isNewest()).toBe("1");
  await router.reloadCatalogue(); // refused
  expect(await isNewest()).toBe("0");
  expect(await hosts()).toEqual([liar]);
  nodesAre("");
  await router.reloadCatalogue();
  expect(await hosts()).toEqual([listed, liar]);
  expect(await isNewest()).toBe("1");
  for (const agent of agents) agent[Symbol.dispose]();
});

async function get(path: string, to: { readonly socketPath: string } | { readonly port: number }): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  request({ path, ...to }, (response) => void text(response).then(resolve, reject))
    .on("error", reject)
    .end();
  return promise;
}
