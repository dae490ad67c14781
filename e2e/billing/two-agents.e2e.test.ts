/** Tests two nodes with one router. A dead node and a node in maintenance are no longer chosen. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { SimNodeEngine, simNodes } from "../cluster/sim-node.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";

const nodes = ["node-1", "node-2"];
let cluster: Cluster;
let apiKey: string;

beforeAll(async () => {
  cluster = await Cluster.start(simNodes(["model-a", "model-b"], nodes, { minResidencySeconds: 0 }));
  ({ apiKey } = await cluster.account());
});
afterAll(() => cluster[Symbol.asyncDispose]());

function ask(model = "model-a"): Promise<Answer> {
  return askStream({ baseUrl: cluster.baseUrl, apiKey, model, text: "sim:tokens=3" });
}

async function shown() {
  return Object.fromEntries((await cluster.nodes()).map((node) => [node.name, node]));
}

async function states(): Promise<readonly string[]> {
  const seen = await shown();
  return nodes.map((name) => seen[name]?.state ?? "unknown");
}

test("a model is prewarmed on the node that the operator names, or else on the node that a request would get", async () => {
  expect(await cluster.weiche("prewarm", "model-a", "--node", "node-1")).toEqual({
    ...{ model: "model-a", node: "node-1", state: "asked" },
  });
  const isActive = async (name: string, model: string) => {
    const { state, active } = (await shown())[name]!.slots[0]!;
    return state === "active" && active === model;
  };
  await until("model-a on node-1", () => isActive("node-1", "model-a"));
  expect(await cluster.weiche("prewarm", "model-a")).toEqual({
    ...{ model: "model-a", node: "node-1", slot: "a", state: "active" },
  });
  expect(await cluster.weiche("prewarm", "model-b")).toEqual({ model: "model-b", node: "node-2", state: "asked" });
  await until("model-b on node-2", () => isActive("node-2", "model-b"));
  await expect(cluster.weiche("prewarm", "model-x")).rejects.toThrow(/no model \\"model-x\\"; did you mean/);
  await expect(cluster.weiche("prewarm", "model-a", "--node", "node-3")).rejects.toThrow(/no node \\"node-3\\"/);
});

/** Asks for `model-b`, which waits on node-1 for a switch, because node-2 is in maintenance. */
async function waitingRequest() {
  const begun = Promise.withResolvers<void>();
  const client = new AbortController();
  const question = { baseUrl: cluster.baseUrl, apiKey, model: "model-a", text: "sim:tokens=30000" };
  const running = askStream({ ...question, signal: client.signal, onPiece: () => begun.resolve() });
  await begun.promise;
  const waiting = ask("model-b");
  const live = async () => ((await cluster.weiche("requests", "--live")) as { items: { waitsFor?: string }[] }).items;
  const isWaiting = async () => (await live()).some(({ waitsFor }) => waitsFor === "switch");
  await until("it to wait", isWaiting);
  const leave = async () => {
    client.abort();
    await running;
  };
  return { waiting, isWaiting, leave };
}

async function stopAgent(leave: () => Promise<void>): Promise<void> {
  const agent = cluster.agents.get("node-1")!;
  agent.kill("SIGTERM");
  await until("node-1 to be away", async () => (await states())[0] !== "live");
  await leave();
  await agent.exited();
}

test("a request that waits for a switch waits on at a reload and at SIGHUP, and when its agent stops, it is served by another node or gets 503 [B6]", async () => {
  await cluster.weiche("node", "maintenance", "node-2", "on");
  const alone = await waitingRequest();
  await cluster.weiche("catalogue", "reload");
  const agent = cluster.agents.get("node-1")!;
  agent.kill("SIGHUP");
  await until("the agent to hear it", () =>
    agent.output.some((line) => line.includes("agent.yaml is read at a start")),
  );
  expect(await alone.isWaiting()).toBe(true);
  await stopAgent(alone.leave);
  const refused = await alone.waiting;
  expect(refused).toMatchObject({ ending: "refused", status: 503, error: { code: "maintenance" } });
  expect(refused.retryAfterSeconds).toBeGreaterThanOrEqual(1);

  const isLive = async () => (await states())[0] === "live";
  await cluster.startAgent("node-1");
  await until("node-1 to be back", isLive, 30_000);
  const replaced = await waitingRequest();
  await cluster.weiche("node", "maintenance", "node-2", "off");
  await stopAgent(replaced.leave);
  expect(await replaced.waiting).toMatchObject({ ending: "whole" });
  await cluster.startAgent("node-1");
  await until("node-1 to be back", isLive, 30_000);
}, 90_000);

test("a node in maintenance gets no requests, and if all nodes are in maintenance, clients get the error `maintenance` [S18.8]", async () => {
  expect(await cluster.weiche("node", "maintenance", "node-1", "on")).toEqual({
    ...{ node: "node-1", maintenance: true, state: "maintenance" },
  });
  expect(await states()).toEqual(["maintenance", "live"]);
  expect(await ask()).toMatchObject({ ending: "whole" });
  expect((await shown())["node-2"]!.slots[0]).toMatchObject({ active: "model-a" });
  await cluster.weiche("node", "maintenance", "node-2", "on");
  const refused = await ask();
  expect(refused).toMatchObject({ ending: "refused", status: 503, error: { code: "maintenance" } });
  expect(refused.retryAfterSeconds).toBeGreaterThanOrEqual(1);
  await expect(cluster.weiche("prewarm", "model-a")).rejects.toThrow(/every node of model-a is in maintenance/);
});

async function restart(): Promise<void> {
  for (const program of [cluster.agents.get("node-1")!, cluster.router]) {
    program.kill("SIGKILL");
    await program.exited();
  }
  await Promise.all([cluster.startRouter(), cluster.startAgent("node-1")]);
  const isBack = (state: string) => state === "maintenance" || state === "live";
  await until("both nodes to be back", async () => (await states()).every(isBack), 90_000);
}

test("a node is in maintenance if its router or its agent requires it, even after restarts of both", async () => {
  const routerSays = (node: string, wish: "on" | "off") => cluster.weiche("node", "maintenance", node, wish);
  const ownSideSays = (wish: "on" | "off") => cluster.weicheAgent("node-1", "maintenance", wish);
  const isShownAs = (state: string) =>
    until(`the router to show ${state}`, async () => (await states())[0] === state, 90_000);
  // First both sides require it, then one.
  await ownSideSays("on");
  await expect(routerSays("node-1", "off")).rejects.toThrow("it was turned on at the node");
  await routerSays("node-2", "off");
  await restart();
  await isShownAs("maintenance");
  expect(await cluster.weicheAgent("node-1", "status")).toMatchObject({ maintenance: true });
  expect(await ask()).toMatchObject({ ending: "whole" });
  await ownSideSays("off");
  await isShownAs("live");
  // Now only the router requires it.
  await routerSays("node-1", "on");
  await restart();
  await isShownAs("maintenance");
  await routerSays("node-1", "off");
  await isShownAs("live");
  expect(await ask()).toMatchObject({ ending: "whole" });
}, 400_000);

test("the other node answers a request whose node dies before its first token, and both attempts are explained", async () => {
  await until("both nodes to be live", async () => (await states()).every((state) => state === "live"));
  const asked = askStream({ baseUrl: cluster.baseUrl, apiKey, model: "model-a", text: "sim:tokens=3,ttft=5000" });
  type Live = {
    readonly items: readonly { readonly id: string; readonly tried: readonly { readonly node: string }[] }[];
  };
  let live: Live["items"] = [];
  await until("the request to reach a node", async () => {
    live = ((await cluster.weiche("requests", "--live")) as Live).items;
    return live[0]?.tried.length === 1;
  });
  const { id, tried } = live[0]!;
  const { node } = tried[0]!;
  cluster.agents.get(node)!.kill("SIGKILL");
  expect(await asked).toMatchObject({ ending: "whole", id });
  const other = nodes.find((name) => name !== node);
  await until("the usage of the request", async () =>
    (await usageOf(id)).some(({ outcome }) => outcome === "finished"),
  );
  const explained = (await cluster.weiche("explain", id)) as {
    readonly ended: { readonly tried: readonly object[] };
  };
  expect(explained.ended.tried).toMatchObject([{ node }, { node: other }]);
  expect((await usageOf(id)).filter(({ credits }) => Number(credits) > 0)).toMatchObject([{ attempt: 2, node: other }]);
  await cluster.startAgent(node);
  await until("both nodes to be live", async () => (await states()).every((state) => state === "live"));
});

async function usageOf(id: string) {
  type Record = {
    readonly attempt: number;
    readonly node: string;
    readonly outcome: string;
    readonly credits: unknown;
  };
  return ((await cluster.weiche("explain", id)) as { readonly usage: readonly Record[] | null }).usage ?? [];
}

test("a node with a failing engine gets few requests, no client fails or pays for it, and it is used again when it recovers [C8]", async () => {
  await until("both nodes to be live", async () => (await states()).every((state) => state === "live"));
  for (const node of nodes) await cluster.weiche("prewarm", "model-a", "--node", node);
  await until("the model to be active on both", async () =>
    Object.values(await shown()).every(({ slots }) => slots[0]!.active === "model-a" && slots[0]!.state === "active"),
  );
  const { apiKey: ownKey, accountId } = await cluster.account("Failing");
  const used = async () =>
    ((await cluster.weiche("usage", "--account", accountId)) as { readonly totals: Record<string, number> }).totals;
  const engine = new SimNodeEngine(join(cluster.directory, "node-1"), "a", "model-a");
  const troubles = async () => (await shown())["node-1"]!.slots[0]!.troubles;
  // Its probe of one token passes, so that the agent has no reason to restart the engine.
  await engine.setFaults("500:1");
  const failedAt1 = async () => {
    const text = await (await fetch(`http://${cluster.router.listen["ops"]}/metrics`)).text();
    return Number(/^weiche_router_attempts_failed_total\{node="node-1"\} (\d+)$/m.exec(text)?.[1]);
  };
  const before = await failedAt1();
  const answers: Answer[] = [];
  for (let time = 0; time < 120; time++) {
    const text = `sim:tokens=3 ${time}`; // each text is a new conversation, whose home may be either node
    answers.push(await askStream({ baseUrl: cluster.baseUrl, apiKey: ownKey, model: "model-a", text }));
  }
  expect(answers.filter(({ ending }) => ending !== "whole")).toEqual([]);
  const met = (await failedAt1()) - before;
  expect(met).toBeGreaterThanOrEqual(3);
  expect(met).toBeLessThanOrEqual(12);
  expect(await troubles()).toMatchObject([{ model: "model-a", kind: "failing" }]);
  expect(await cluster.weiche("nodes", "show", "node-1")).toMatchObject({ troubles: ["failing"] });
  await until("all usage to be recorded", async () => (await used())["requests"] === 120);
  const totalTokens = answers.reduce((sum, { usage }) => sum + usage!.total_tokens, 0);
  expect(await used()).toMatchObject({ requests: 120, totalTokens });
  await engine.setFaults();
  await until(
    "the node to be used again",
    async () => {
      expect(await ask()).toMatchObject({ ending: "whole" });
      await sleep(250); // stays within the limits of the package
      return (await troubles()).length === 0;
    },
    60_000,
  );
});

test("a killed node is no longer chosen after a second [C1]", async () => {
  await until("both nodes to be live", async () => (await states()).every((state) => state === "live"));
  await cluster.weiche("prewarm", "model-a", "--node", "node-1");
  await cluster.weiche("prewarm", "model-a", "--node", "node-2");
  await until("the model to be active on both", async () =>
    Object.values(await shown()).every(({ slots }) => slots[0]!.active === "model-a" && slots[0]!.state === "active"),
  );
  cluster.agents.get("node-2")!.kill("SIGKILL");
  const killedMs = performance.now();
  const late: Answer[] = [];
  while (performance.now() - killedMs < 2_500) {
    const isLate = performance.now() - killedMs > 1_000;
    const seen = await ask();
    if (isLate) late.push(seen);
  }
  expect(late.length).toBeGreaterThan(10);
  expect(late.filter(({ ending }) => ending !== "whole")).toEqual([]);
  expect((await shown())["node-2"]!.state).toBe("gone");
});
