/** Tests two models on one slot that sleep and wake under load. No running request is ever aborted. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { Cluster } from "../cluster/cluster.ts";
import { SimNodeEngine, simNodes } from "../cluster/sim-node.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { RawClient, rawPost } from "@weiche/router/test/edge/raw-client.ts";

const nightly = process.env["WEICHE_NIGHTLY"] !== undefined;
const switchesWanted = nightly ? 200 : 20;
const models = ["model-a", "model-b"] as const;
/** A package allows 150 requests a minute. */
const accounts = nightly ? 8 : 2;

let cluster: Cluster;
const apiKeys: string[] = [];

beforeAll(async () => {
  cluster = await Cluster.start(simNodes(models, ["node-1"], { minResidencySeconds: 0.1, drainOpenSeconds: 0.2 }));
  const made = await Promise.all(Array.from({ length: accounts }, (_, number) => cluster.account(`Switch-${number}`)));
  apiKeys.push(...made.map(({ apiKey }) => apiKey));
});
afterAll(() => cluster[Symbol.asyncDispose]());

function ask(model: string, text: string, apiKey = apiKeys[0]!): Promise<Answer> {
  return askStream({ baseUrl: cluster.baseUrl, apiKey, model, text });
}

function engineOf(model: string): SimNodeEngine {
  return new SimNodeEngine(`${cluster.directory}/node-1`, "a", model);
}

/** Number of switches of the slot, as the agent counts them. With `phase`, only the switches that had this phase. */
async function switches(phase?: string): Promise<number> {
  const { ops } = cluster.agents.get("node-1")!.listen;
  const text = await (await fetch(`http://${ops}/metrics`)).text();
  const series = phase ? `_phase_seconds_count{slot="a",phase="${phase}"}` : `_seconds_count{slot="a"}`;
  const line = text.split("\n").find((one) => one.startsWith(`weiche_agent_switch${series} `));
  return Number(line?.split(" ")[1] ?? 0);
}

test("a model without requests sleeps, and its process wakes at the next request [S17.1]", async () => {
  expect(await ask("model-a", "sim:tokens=3")).toMatchObject({ ending: "whole" });
  expect(await ask("model-b", "sim:tokens=3")).toMatchObject({ ending: "whole" });
  const [a, b] = [engineOf("model-a"), engineOf("model-b")];
  const pids = [a.pid, b.pid];
  expect([(await a.state()).sleeping, (await b.state()).sleeping]).toEqual([true, false]);
  expect(await ask("model-a", "sim:tokens=3")).toMatchObject({ ending: "whole" });
  expect([(await a.state()).sleeping, (await b.state()).sleeping]).toEqual([false, true]);
  expect([a.pid, b.pid], "no engine was restarted").toEqual(pids);
  // Two cold starts and a wake. The agent proved each.
  expect([await switches("start"), await switches("probe")]).toEqual([3, 3]);
});

test("a switch does not wait for a slow client, which still gets its whole answer [B8]", async () => {
  const messages = [{ role: "user", content: "sim:tokens=30000,itl=0 go on" }];
  const body = JSON.stringify({ model: "model-a", stream: true, messages });
  const post = rawPost("/v1/chat/completions", body, ["connection: close"]).replace("sk-good", apiKeys[0]!);
  const reader = new RawClient(Number(new URL(cluster.baseUrl).port));
  reader.socket.pause();
  const engine = engineOf("model-a");
  const asked = (await engine.requests()).length;
  reader.send(post);
  while ((await engine.requests()).length === asked) await sleep(10);
  const other = await Promise.race([ask("model-b", "sim:tokens=3"), sleep(30_000)]);
  expect(other).toMatchObject({ ending: "whole" });
  reader.socket.resume();
  const received = await reader.all(30_000);
  expect(received.match(/"content":/g)!.length).toBeGreaterThan(29_000);
  expect(received).toContain("data: [DONE]");
  expect((await engine.requests()).filter(({ aborted }) => aborted)).toEqual([]);
}, 90_000);

test(`during ${switchesWanted} switches under load, no stream is aborted and no working engine is put to sleep [B1 S17.2]`, async () => {
  const random = createRandom(7);
  const pids = models.map((model) => engineOf(model).pid);
  const before = await switches();
  const seen: Answer[] = [];
  let isOver = false;
  const load = Array.from({ length: 6 }, async (_, client) => {
    while (!isOver) {
      const tokens = 10 + random.below(60);
      const one = await ask(models[client % 2]!, `sim:tokens=${tokens}`, apiKeys[seen.length % accounts]);
      seen.push(one);
      await sleep(one.ending === "refused" ? 150 : 100 + random.below(200));
    }
  });
  const untilMs = performance.now() + switchesWanted * 2_000;
  while ((await switches()) - before < switchesWanted && performance.now() < untilMs) await sleep(100);
  isOver = true;
  await Promise.all(load);

  expect((await switches()) - before).toBeGreaterThanOrEqual(switchesWanted);
  const refused = seen.filter(({ ending }) => ending === "refused");
  expect(seen.filter(({ ending }) => ending !== "whole" && ending !== "refused")).toEqual([]);
  expect(
    refused.filter(({ error, retryAfterSeconds = 0 }) => error?.code !== "model_switching" || retryAfterSeconds < 1),
  ).toEqual([]);
  expect(seen.length - refused.length).toBeGreaterThan(switchesWanted);
  for (const model of models) {
    const engine = engineOf(model);
    expect(await engine.state()).toMatchObject({ sleptBusy: 0, running: 0, waiting: 0 });
    expect((await engine.requests()).filter(({ aborted }) => aborted)).toEqual([]);
  }
  expect(
    models.map((model) => engineOf(model).pid),
    "no engine was restarted",
  ).toEqual(pids);
}, 600_000);
