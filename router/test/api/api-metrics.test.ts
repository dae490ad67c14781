/** What clients make up adds nothing to what the router measures of itself. */
import { Agent, request as httpRequest } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLog } from "@weiche/shared/program/log.ts";
import { createApiEvents } from "../../src/events.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { chat, startApi, type Harness } from "./api-harness.ts";

const madeUp = process.env["WEICHE_NIGHTLY"] ? 100_000 : 2_000;
const atOnce = 32;
const connections = new Agent({ keepAlive: true, maxSockets: atOnce });
let api: Harness;
let metrics: Metrics;
beforeAll(async () => {
  metrics = createMetrics(() => api.limiter.running);
  api = await startApi({ events: createApiEvents(createLog("test", "silent"), metrics, { count: () => {} }) });
  // A node may make up statuses and codes, too.
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
  // Whoever is refused may lose the connection.
  made.once("close", resolve).once("error", () => resolve());
  made.once("response", (response) => response.resume());
  made.end(body);
  await promise;
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "REPORT"];

/** One request of each kind, everything in it made up. */
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

test("made-up models, paths, methods, hosts, keys and codes add no series", { timeout: 600_000 }, async () => {
  const each = madeUp / 4;
  // Every status of a node once.
  for (let n = 0; n < 200; n += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, k) => askAll(n + k)));
  const before = await series();
  for (let n = 200; n < each; n += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, k) => askAll(n + k)));
  const after = await series();
  expect([...after].filter((one) => !before.has(one))).toEqual([]);
  expect([...after].filter((one) => /\d{3}-|made-up|path-|host-|agent-\d|code-|type-/.test(one))).toEqual([]);
  expect(after.size).toBeLessThan(300);
  const asked = api.nodes.sent.length;
  expect(asked).toBeGreaterThan(each / 2); // what nodes made up was met, too
});

test("requests that hold a parallel place are counted while they do", async () => {
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
