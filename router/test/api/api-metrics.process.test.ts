/** Tests that names made up by clients add no series to the router's metrics. */
import { Agent, request as httpRequest } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { asId } from "@weiche/shared/ids.ts";
import { createLog } from "@weiche/shared/program/log.ts";
import { createApiEvents } from "../../src/events.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { caller, chat, startApi, type Harness } from "./api-harness.ts";

const madeUp = process.env["WEICHE_NIGHTLY"] ? 100_000 : 2_000;
const atOnce = 32;
const connections = new Agent({ keepAlive: true, maxSockets: atOnce });
let api: Harness;
let metrics: Metrics;
beforeAll(async () => {
  metrics = createMetrics(() => api.limiter.running);
  api = await startApi({
    events: createApiEvents(createLog("test", "silent"), metrics, { count: () => {} }, { remember: () => {} }),
  });
  // Nodes make up statuses and codes, too.
  api.nodes.script = ({ body }) => {
    const n = Number(/node-(\d+)/.exec(body.toString())?.[1] ?? NaN);
    if (Number.isNaN(n)) return {};
    const error = { message: "m", type: `type-${n}`, param: null, code: `code-${n}` };
    return { status: 400 + (n % 200), chunks: [JSON.stringify({ error })] };
  };
});
afterAll(async () => {
  connections.destroy();
  await api[Symbol.asyncDispose]();
});

async function ask(method: string, path: string, headers: Record<string, string>, body?: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const made = httpRequest({ agent: connections, host: "127.0.0.1", port: api.port, method, path, headers });
  // The router may close the connection of a refused request.
  made.once("close", resolve).once("error", () => resolve());
  made.once("response", (response) => response.resume());
  made.end(body);
  await promise;
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "REPORT"];

/** Sends one request of each kind with made-up names. */
async function askAll(n: number): Promise<void> {
  const json = { authorization: "Bearer sk-good", "content-type": "application/json" };
  const model = JSON.stringify(chat({ model: `made-up-${n}` }));
  const message = JSON.stringify(chat({ messages: [{ role: "user", content: `node-${n}` }] }));
  await ask("POST", "/v1/chat/completions", { ...json, host: `host-${n}.example` }, model);
  await ask("POST", "/v1/chat/completions", { ...json, "user-agent": `agent-${n}`, "x-request-id": `${n}` }, message);
  await ask(methods[n % methods.length]!, `/v1/path-${n}?query=${n}`, json);
  await ask("GET", "/v1/models", { authorization: `Bearer sk-weiche-${n}` });
}

async function series(): Promise<Set<string>> {
  const lines = (await metrics.registry.metrics()).split("\n").filter((line) => line.startsWith("weiche_"));
  return new Set(lines.map((line) => line.slice(0, line.lastIndexOf(" "))));
}

test("made-up models, paths, methods, hosts, keys and codes add no series [E8]", { timeout: 600_000 }, async () => {
  const each = madeUp / 4;
  // Each status that a node can send occurs once.
  for (let n = 0; n < 200; n += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, k) => askAll(n + k)));
  const before = await series();
  for (let n = 200; n < each; n += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, k) => askAll(n + k)));
  const after = await series();
  expect([...after].filter((one) => !before.has(one))).toEqual([]);
  expect([...after].filter((one) => /\d{3}-|made-up|path-|host-|agent-\d|code-\d|type-/.test(one))).toEqual([]);
  expect(after.size).toBeLessThan(500);
  const asked = api.nodes.sent.length;
  expect(asked).toBeGreaterThan(each / 2); // nodes also answered with made-up codes
});

test("refusals are counted by reason, and each counter begins with 0", async () => {
  const own = createMetrics(() => 0);
  const events = createApiEvents(createLog("test", "silent"), own, { count: () => {} }, { remember: () => {} });
  const limits = { perIpPerSecond: 1, perIpBurst: 8 };
  await using limited = await startApi({ events, limits, clock: new VirtualClock() });
  const path = "/v1/chat/completions";
  const counts = async () => {
    const { values } = await own.refusals.get();
    return Object.fromEntries(values.map(({ labels, value }): [string, number] => [String(labels.reason), value]));
  };
  const before = await counts();
  expect(Object.keys(before).length).toBeGreaterThan(20);
  expect(Object.values(before).every((value) => value === 0)).toBe(true);
  limited.keys.set("sk-once", caller({ requestsPerMinute: 1 }));
  limited.keys.set("sk-none", caller({ parallelRequests: 0, accountId: asId("account-2") }));
  limited.keys.set("sk-old", { refused: "invalid_api_key", why: "expired" });
  for (const key of ["sk-once", "sk-once", "sk-none", "sk-old", "sk-who"])
    await limited.post(path, chat(), { authorization: `Bearer ${key}` });
  await limited.get("/v1/elsewhere");
  await limited.post(path, chat({ model: "made-up" }));
  limited.placement.refused = "no_node_available";
  await limited.post(path, chat());
  await limited.post(path, chat()); // one request more than the address may send
  const nonZero = Object.entries(await counts()).filter(([, value]) => value > 0);
  expect(Object.fromEntries(nonZero)).toEqual({
    ...{ rate_limit_minute: 1, rate_limit_parallel: 1, key_expired: 1, invalid_api_key: 1, path_not_supported: 1 },
    ...{ invalid_request: 1, no_node_available: 1, address_limit: 1 },
  });
});

test("the gauge of parallel requests counts each request while it holds its place", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const parallel = async () => /^weiche_router_parallel_requests (\d+)$/m.exec(await metrics.registry.metrics())?.[1];
  const before = api.nodes.script;
  api.nodes.script = () => ({ held: promise });
  const three = [1, 2, 3].map(() => api.post("/v1/chat/completions", chat()));
  await expect.poll(parallel, { timeout: 10_000 }).toBe("3");
  resolve();
  await Promise.all(three);
  await expect.poll(parallel, { timeout: 10_000 }).toBe("0");
  api.nodes.script = before;
});
