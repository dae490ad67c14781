/** The listener of the API: how it stops, its limit per address, and TLS. */
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import type { TlsMaterial } from "@weiche/shared/http/tls-files.ts";
import { chat, startApi } from "../api/api-harness.ts";
import { askTls, certificate } from "../nodes/certificate.ts";
import { RawClient, rawPost, until } from "./raw-client.ts";

const path = "/v1/chat/completions";
const request = rawPost(path, JSON.stringify(chat({ stream: true })));
const never = new Promise<never>(() => {});

test("a leaving listener serves requests, and each connection closes after its answer [R2]", async () => {
  await using api = await startApi();
  const [first, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  api.nodes.script = () => ({ kind: "events", chunks: ["data: 1\n\n", first.promise, "data: [DONE]\n\n"] });
  const begun = new RawClient(api.port).send(request);
  await until(() => begun.received.includes("data: 1"));
  api.nodes.script = () => ({ held: held.promise, chunks: ["{}"] });
  const waiting = new RawClient(api.port).send(request);
  await until(() => api.nodes.open === 2);
  api.server.leave();
  api.nodes.script = () => ({ chunks: ["{}"] });
  const late = ["/v1/models", "/nowhere"].map((at) =>
    new RawClient(api.port).send(`GET ${at} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-good\r\n\r\n`),
  );
  held.resolve();
  const answers = await Promise.all(
    [waiting, new RawClient(api.port).send(request), ...late].map((each) => each.all()),
  );
  expect(answers.map((answer) => /^HTTP\/1.1 (\d+)/.exec(answer)?.[1])).toEqual(["200", "200", "200", "403"]);
  for (const answer of answers) expect(answer).toMatch(/\r\nconnection: close\r\n/i);
  first.resolve();
  await until(() => begun.received.includes("data: [DONE]"));
  // This answer began before and keeps its connection, so a request that is already sent is served, too.
  begun.received = "";
  expect(await begun.send(request).all()).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n/is);
});

test("a stopping listener completes a running stream and accepts nothing new", async () => {
  const api = await startApi();
  const { promise, resolve } = Promise.withResolvers<void>();
  api.nodes.script = () => ({ kind: "events", chunks: ["data: 1\n\n", promise, "data: [DONE]\n\n"] });
  const [idle, kept] = [new RawClient(api.port), new RawClient(api.port)];
  kept.send(request);
  await until(() => kept.received.includes("data: 1"));
  let isClosed = false;
  const closed = api.server.close(30_000).then(() => (isClosed = true));
  await expect(fetch(`http://127.0.0.1:${api.port}/v1/models`)).rejects.toThrow(/fetch failed/);
  expect(isClosed).toBe(false);
  resolve();
  await closed;
  const received = await kept.all();
  expect(received).toContain("data: [DONE]");
  expect(received.endsWith("0\r\n\r\n")).toBe(true);
  expect(await idle.all()).toBe("");
});

test("a stopping listener does not begin a request behind a running one, and closes the connection", async () => {
  const api = await startApi();
  const { promise, resolve } = Promise.withResolvers<void>();
  api.nodes.script = () => ({ held: promise, chunks: ["{}"] });
  const client = new RawClient(api.port).send(request);
  await until(() => api.nodes.open === 1);
  const closed = api.server.close(30_000);
  client.send(request);
  await until(() => client.socket.writableLength === 0);
  resolve();
  await closed;
  expect((await client.all()).match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
  expect(api.finished.map(({ status }) => status)).toEqual([200]);
  expect(api.nodes.sent.length).toBe(1);
});

test.each([
  ["cuts a stream that does not end", { kind: "events" as const, chunks: ["data: 1\n\n", never] }, "client-gone"],
  ["refuses a held request", { held: never }, "refused"],
])("a listener %s when its time for shutdown is over", async (_name, answer, outcome) => {
  const api = await startApi();
  api.nodes.script = () => answer;
  const clients = Array.from({ length: 20 }, () => new RawClient(api.port).send(request));
  const silent = new RawClient(api.port).send("POST /v1");
  await until(() => api.nodes.open === 20);
  await api.server.close(100);
  await until(() => api.nodes.open === 0);
  for (const client of [...clients, silent]) expect((await client.all()).endsWith("0\r\n\r\n")).toBe(false);
  expect(new Set(api.finished.map((one) => one.outcome))).toEqual(new Set([outcome]));
});

test("a listener without running requests stops at once, even with open connections", async () => {
  const api = await startApi();
  const clients = [new RawClient(api.port), new RawClient(api.port).send("GET /v1/mod")];
  await until(() => clients.every(({ socket }) => !socket.connecting));
  await api.server.close(30_000);
  await Promise.all(clients.map((client) => client.all()));
  expect(api.failures).toEqual([]);
});

test("an address has a burst of 20, then gets a page with 503 on every path and with any key [S18.2]", async () => {
  await using api = await startApi({ limits: { perIpPerSecond: 0.001, perIpBurst: 20 } });
  const statuses: number[] = [];
  for (let n = 0; n < 20; n++) statuses.push((await api.get("/v1/models")).status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  for (const path of ["/v1/models", "/nowhere", "/v1/%zz"]) {
    const answer = await api.fetch(path);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "60"]);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  }
});

const tunnel = "CONNECT example.test:443 HTTP/1.1\r\nhost: example.test\r\n\r\n";

test("a CONNECT request is refused with a page and counts against the address's limit", async () => {
  await using api = await startApi({ limits: { perIpPerSecond: 0.001, perIpBurst: 1 } });
  expect(await new RawClient(api.port).send(tunnel).all()).toMatch(/^HTTP\/1.1 403 .*text\/html/s);
  expect(await new RawClient(api.port).send(tunnel).all()).toMatch(/^HTTP\/1.1 503 .*retry-after: 1\r\n/s);
  expect((await api.get("/v1/models")).status).toBe(503);
});

test("a client that resets a connection after CONNECT raises no error", async () => {
  await using api = await startApi();
  const raised: unknown[] = [];
  const onRaised = (error: unknown) => void raised.push(error);
  process.on("uncaughtException", onRaised);
  for (let attempt = 0; attempt < 20; attempt++) {
    const client = new RawClient(api.port);
    await once(client.socket, "connect");
    client.send(tunnel);
    await setImmediate(); // the request was read, but the answer is not sent yet
    client.socket.resetAndDestroy();
    await until(() => client.isClosed);
  }
  expect((await api.get("/v1/models")).status).toBe(200);
  process.off("uncaughtException", onRaised);
  expect(raised).toEqual([]);
});

test("the refusal of a CONNECT behind a running request follows that request's answer", async () => {
  await using api = await startApi();
  const { promise: held, resolve } = Promise.withResolvers<void>();
  api.nodes.script = () => ({ held });
  const client = new RawClient(api.port).send(request);
  await until(() => api.nodes.open === 1);
  client.send(tunnel);
  await until(() => client.socket.writableLength === 0);
  resolve();
  expect((await client.all()).match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 403"]);
  expect(api.finished).toMatchObject([{ outcome: "answered" }]);
});

test("a trusted proxy's clients have separate limits, and other clients cannot choose their address [S19.5]", async () => {
  const limits = { perIpPerSecond: 0.001, perIpBurst: 2 };
  const ask = async (trustedProxies: string[], addresses: string[]) => {
    await using api = await startApi({ limits: { ...limits, trustedProxies } });
    const statuses: number[] = [];
    for (const address of addresses)
      statuses.push((await api.get("/v1/models", { "x-forwarded-for": address })).status);
    return statuses;
  };
  const addresses = ["198.51.100.1", "198.51.100.1", "198.51.100.1", "198.51.100.2", "1.1.1.1, 198.51.100.1"];
  expect(await ask(["127.0.0.1"], addresses)).toEqual([200, 200, 503, 200, 503]);
  expect(await ask([], addresses)).toEqual([200, 200, 503, 503, 503]);
  const ports = ["198.51.100.1:1", "198.51.100.1:2", "198.51.100.1:3", "198.51.100.2:1", "[2001:db8::1]:1"];
  expect(await ask(["127.0.0.1"], ports)).toEqual([200, 200, 503, 200, 200]);
  expect(await ask(["127.0.0.1"], Array<string>(5).fill("unknown"))).toEqual([200, 200, 200, 200, 200]);
  const line = ["2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::3", "2001:db8:0:1::1"];
  expect(await ask(["127.0.0.1"], line)).toEqual([200, 200, 503, 200]);
});

test("a new certificate is used from the next connection on", async () => {
  const folder = temporaryDirectory();
  const [first, second] = [certificate(folder, "first"), certificate(folder, "second")];
  let change: (material: TlsMaterial) => void = () => {};
  const tls = { current: first, onChange: (callback: typeof change) => ((change = callback), () => {}) };
  await using api = await startApi({ tls });
  expect(await askTls(api.port, "/v1/models", { authorization: "Bearer sk-good" })).toEqual(["first", 200]);
  change((tls.current = second));
  expect(await askTls(api.port, "/v1/models", { authorization: "Bearer sk-good" })).toEqual(["second", 200]);
});
