/**
 * Tests stopping either end separately. Running answers finish, or cost nothing if they are cut at the deadline.
 * Engines continue, the next agent takes them over, and all usage is delivered.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, isAlive, until } from "../cluster/cluster.ts";
import { joinAsOwner } from "../cluster/portal-owner.ts";
import { SimNodeEngine, simNodes } from "../cluster/sim-node.ts";
import { askStream } from "../cluster/api-client.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";

let cluster: Cluster;
let apiKey: string;

beforeAll(async () => {
  cluster = await Cluster.start({ ...simNodes(["model-a"]), router: { shutdownSeconds: 3 } });
  ({ apiKey } = await cluster.account());
});
afterAll(() => cluster[Symbol.asyncDispose]());

test("after SIGTERM the agent is unready, running streams finish, and the engine stays and is taken over [B6]", async () => {
  const engine = new SimNodeEngine(join(cluster.directory, "node-1"), "a", "model-a");
  const agent = cluster.agents.get("node-1")!;
  const isReady = async () => (await fetch(`http://${agent.listen["ops"]}/readyz`)).status === 200;
  expect(await isReady()).toBe(true);

  const begun = Promise.withResolvers<void>();
  const question = { baseUrl: cluster.baseUrl, apiKey, model: "model-a" };
  const running = askStream({ ...question, text: "sim:tokens=300", onPiece: () => begun.resolve() });
  await begun.promise;
  const pid = engine.pid!;
  agent.kill("SIGTERM");
  await until("the agent to be unready", async () => !(await isReady()), 1_000);
  expect(await running).toMatchObject({ ending: "whole", usage: { completion_tokens: 300 } });
  expect(await agent.exited()).toBe(0);
  // The agent delivered its last record before it ended.
  expect(await dumpUsage(cluster)).toHaveLength(1);
  expect(isAlive(pid)).toBe(true);

  await cluster.startAgent("node-1");
  await cluster.linked();
  expect(await askStream({ ...question, text: "sim:tokens=3" })).toMatchObject({ ending: "whole" });
  expect(engine.pid).toBe(pid);
});

test("an answer that a stopping router cuts costs nothing, even in the playground", async () => {
  const ada = await joinAsOwner(cluster);
  const begun = Promise.withResolvers<void>();
  const question = { baseUrl: cluster.baseUrl, apiKey, model: "model-a", text: "sim:tokens=20000" };
  const running = askStream({ ...question, onPiece: () => begun.resolve() });
  const messages = [{ role: "user", content: "sim:tokens=20000 Hello" }];
  const chat = await ada.send("/chat", { model: "model-a", max_tokens: 20_000, messages, stream: true });
  const reader = chat.body!.getReader();
  for (let seen = ""; seen.split("data: ").length < 5;) seen += Buffer.from((await reader.read()).value!).toString();
  await begun.promise;
  cluster.router.kill("SIGTERM");
  expect((await running).ending).toBe("broken");
  expect(await cluster.router.exited()).toBe(0);
  await cluster.startRouter();
  await cluster.linked();
  const cut = async () => (await dumpUsage(cluster)).filter(({ outcome }) => outcome !== "finished");
  await until("both to be recorded", async () => (await cut()).length === 2);
  // The router declares the answer void and the agent records it as broken. The first of the two stays.
  const outcome: unknown = expect.stringMatching(/^(void|broken)$/);
  const nothing = { outcome, promptTokens: 0, completionTokens: 0 };
  expect(await cut()).toEqual([nothing, nothing].map((costs) => expect.objectContaining(costs) as unknown));
});

test("the only router lets answers end and commits their usage before it stops [B6]", async () => {
  const agent = cluster.agents.get("node-1")!;
  const begun = Promise.withResolvers<void>();
  const question = { baseUrl: cluster.baseUrl, apiKey, model: "model-a" };
  const running = askStream({ ...question, text: "sim:tokens=200", onPiece: () => begun.resolve() });
  await begun.promise;
  cluster.router.kill("SIGTERM");
  expect(await running).toMatchObject({ ending: "whole", usage: { completion_tokens: 200 } });
  expect(await cluster.router.exited()).toBe(0);
  const metrics = await (await fetch(`http://${agent.listen["ops"]}/metrics`)).text();
  expect(metrics).toMatch(/^weiche_agent_outbox_records 0$/m);
});
