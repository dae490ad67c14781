/** Tests a real agent with a simulated engine against a router in plain buffers on its data connections. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { uuidv7 } from "@weiche/shared/ids.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { reachableDirectory, startAgent, type RunningProgram } from "../cluster/cluster.ts";
import { readMetrics, samplesOf, seriesOf } from "../cluster/metrics-text.ts";
import { openNodeEnd, type NodeEnd } from "../cluster/node-end.ts";
import { catalogueOf, simEngine, SimNodeEngine } from "../cluster/sim-node.ts";
import { frameTypes, plainFrame, window, type PlainPeer } from "./plain-peer.ts";
import { PlainRouter } from "./plain-router.ts";

const { cancel, data, end, goaway, head, ping, pong, windowed } = frameTypes;

const model = "model-a";
const root = reachableDirectory("weiche-plain-router-");
const directory = join(root, "data");
let router: PlainRouter;
let link: NodeEnd;
let agent: RunningProgram;
let peer: PlainPeer;
let engine: SimNodeEngine;

beforeAll(async () => {
  router = await PlainRouter.listen();
  const { catalogue } = parseCatalogue(stringify(catalogueOf(model)));
  link = await openNodeEnd(catalogue!, undefined, `127.0.0.1:${router.port}`);
  const slots = [{ name: "a", engines: [simEngine(model, { "ttft-ms": 1, "itl-ms": 0 })] }];
  agent = await startAgent(directory, { node: "gpu-1", routers: [link.address], shutdownSeconds: 5, slots });
  engine = new SimNodeEngine(directory, "a", model);
  peer = await router.next();
});
afterAll(async () => {
  await agent.stop();
  for (const end of [router, link]) await end[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

function bodyOf(content: string, stream = true): Buffer {
  return Buffer.from(JSON.stringify({ model, stream, messages: [{ role: "user", content }] }));
}

function recordOf(body: Buffer, given: Readonly<Record<number, unknown>> = {}): unknown[] {
  const grant = "q83vEjRWeJCrze8SNFZ4kA";
  const fields = ["/v1/chat/completions", uuidv7(systemClock), 1, model, "a", "u", "u", "k", 1_000, 1_000_000, grant];
  return Object.assign([...fields, 600_000, "router-1", body.length], given);
}

/** Sends a chat and returns the number of its stream. */
function ask(content: string, stream = true): number {
  const body = bodyOf(content, stream);
  return peer.open(recordOf(body), body);
}

async function counter(name: string, labels: Record<string, string> = {}): Promise<number> {
  return samplesOf(await readMetrics(agent)).get(seriesOf(name, labels)) ?? 0;
}

test("the agent sends its identity", () => {
  const [stream] = peer.frames.filter(({ type }) => type === head).map((frame) => frame.stream);
  expect(peer.recordOf(stream!).slice(0, 2)).toEqual([200, "text"]);
  expect(JSON.parse(String(peer.bodyOf(stream!)))).toEqual({ node: "gpu-1", bootId: expect.any(String) as string });
});

test("a chat is answered as events or as one JSON, each with its END", async () => {
  const [streamed, whole] = [ask("sim:tokens=3 hi"), ask("sim:tokens=3 hi", false)];
  expect([await peer.ending(streamed), await peer.ending(whole)]).toEqual(["end 0", "end 0"]);
  expect(peer.recordOf(streamed).slice(0, 3)).toEqual([200, "events", 0]);
  expect(String(peer.bodyOf(streamed))).toMatch(/^data: .*data: \[DONE\]\n\n$/s);
  expect(peer.recordOf(whole).slice(0, 3)).toEqual([200, "json", 0]);
  expect(JSON.parse(String(peer.bodyOf(whole)))).toMatchObject({ usage: { completion_tokens: 3 } });
});

test("a request's record may have unknown fields, and its frames may be cut anywhere", async () => {
  const body = bodyOf("sim:tokens=3 hi");
  const stream = peer.open(["/weiche/identity"], "") + 2;
  const bytes = Buffer.concat([
    plainFrame(head, stream, JSON.stringify([...recordOf(body), "later", { more: [1] }])),
    plainFrame(data, stream, body),
    plainFrame(end, stream, "\0"),
  ]);
  peer.expectStream(stream);
  await peer.pourSlowly(bytes);
  expect(await peer.ending(stream)).toBe("end 0");
  expect(String(peer.bodyOf(stream))).toMatch(/\[DONE\]\n\n$/);
});

const text = expect.any(String) as string;
const errorShape = { message: text, type: text, param: null, code: text };

test.each<[what: string, record: () => unknown]>([
  ["no list", () => ({})],
  ["an empty list", () => []],
  ["an unknown path", () => recordOf(bodyOf(""), { 0: "/v1/secrets" })],
  ["a number instead of a text", () => recordOf(bodyOf(""), { 5: 7 })],
  ["a text instead of a count", () => recordOf(bodyOf(""), { 8: "1000" })],
  ["an invalid request id", () => recordOf(bodyOf(""), { 1: "x" })],
  ["an attempt 0", () => recordOf(bodyOf(""), { 2: 0 })],
  ["a count below 0", () => recordOf(bodyOf(""), { 11: -1 })],
  ["a count that is no integer", () => recordOf(bodyOf(""), { 9: 1.5 })],
  ["a count that is too large", () => recordOf(bodyOf(""), { 9: 1e12 })],
  ["no grant", () => recordOf(bodyOf(""), { 10: "" })],
  ["a grant of 65 characters", () => recordOf(bodyOf(""), { 10: "x".repeat(65) })],
  ["only a path", () => ["/v1/chat/completions"]],
])("a request whose HEAD has %s is answered with 500", async (_what, record) => {
  const stream = peer.open(record(), bodyOf("sim:tokens=1 hi"));
  expect(await peer.ending(stream)).toMatch(/^end [04]$/);
  expect(peer.recordOf(stream).slice(0, 2)).toEqual([500, "json"]);
  expect(JSON.parse(String(peer.bodyOf(stream)))).toEqual({ error: errorShape });
});

test("a HEAD that is not JSON is answered with 500", async () => {
  const stream = peer.open([], "") + 2;
  peer.expectStream(stream);
  peer.pour(plainFrame(head, stream, Buffer.from([0xff, 0x5b])), plainFrame(end, stream, "\0"));
  expect(await peer.ending(stream)).toBe("end 0");
  expect(peer.recordOf(stream).slice(0, 2)).toEqual([500, "json"]);
  expect(JSON.parse(String(peer.bodyOf(stream)))).toEqual({ error: errorShape });
});

test("a request whose body differs in length from its HEAD does not run", async () => {
  for (const length of [1, 10_000]) {
    const body = bodyOf("sim:tokens=1 hi");
    const stream = peer.open(recordOf(body, { 13: length }), body);
    expect(await peer.ending(stream)).toBe("end 4");
    expect(peer.recordOf(stream)[0]).toBeGreaterThanOrEqual(400);
  }
});

test("the agent answers questions for metrics with text and for requests with a list", async () => {
  const [metrics, requests] = [peer.open(["/weiche/metrics"], ""), peer.open(["/weiche/requests"], "")];
  expect([await peer.ending(metrics), await peer.ending(requests)]).toEqual(["end 0", "end 0"]);
  expect(peer.recordOf(metrics).slice(0, 2)).toEqual([200, "text"]);
  expect(String(peer.bodyOf(metrics))).toContain("weiche_agent_");
  expect(JSON.parse(String(peer.bodyOf(requests)))).toEqual([]);
});

test("32 of 40 simultaneous questions are answered, and later questions are too", async () => {
  const first = peer.open(["/weiche/identity"], "") + 2;
  const streams = Array.from({ length: 40 }, (_, n) => first + n);
  for (const stream of streams) peer.expectStream(stream);
  const asked = (stream: number) => [plainFrame(head, stream, '["/weiche/metrics"]'), plainFrame(end, stream, "\0")];
  peer.pour(...streams.flatMap(asked));
  const endings = await Promise.all(streams.map((stream) => peer.ending(stream)));
  expect(endings).toEqual([...Array<string>(32).fill("end 0"), ...Array<string>(8).fill("cancel 1")]);
  expect(await peer.ending(peer.open(["/weiche/metrics"], ""))).toBe("end 0");
});

test("an unread answer stops at the window, continues with each WINDOW, and delays no other answer", async () => {
  const stream = ask("sim:tokens=6000 hi");
  await peer.until("the window", () => peer.bodyOf(stream).length >= window);
  expect(await peer.ending(ask("sim:tokens=3 hi"))).toBe("end 0");
  await peer.settled();
  expect(peer.bodyOf(stream).length).toBe(window);
  peer.giveCredit(stream, 10);
  await peer.until("10 bytes more", () => peer.bodyOf(stream).length === window + 10);
  let credited = 10;
  const more = setInterval(() => {
    const taken = peer.bodyOf(stream).length - window - credited;
    if (taken < 0) return;
    peer.giveCredit(stream, window);
    credited += window;
  }, 1);
  expect(await peer.ending(stream)).toBe("end 0");
  clearInterval(more);
  expect(String(peer.bodyOf(stream))).toMatch(/\[DONE\]\n\n$/);
});

test("a large body continues with the agent's WINDOWs and is accepted", async () => {
  const body = bodyOf(`sim:tokens=1 ${"x ".repeat(400_000)}`);
  const stream = peer.open(recordOf(body));
  for (let at = 0; at < body.length;) {
    await peer.until("credit", () => peer.credit(stream) > 0);
    const part = body.subarray(at, at + Math.min(peer.credit(stream), 65_536));
    peer.write(stream, part);
    at += part.length;
  }
  peer.end(stream);
  expect(await peer.ending(stream)).toBe("end 0"); // the prompt may be too long for the model
  expect(peer.of(stream, windowed).length).toBeGreaterThan(0);
});

test("a cancelled request ends at the engine, and no further frame of it arrives", async () => {
  const stream = ask("sim:tokens=100000,itl=5 hi");
  await peer.until("a beginning", () => peer.bodyOf(stream).length > 0);
  peer.cancel(stream);
  await expect.poll(async () => (await engine.requests()).at(-1)).toMatchObject({ aborted: true });
  await peer.settled();
  const before = peer.of(stream).length;
  await peer.settled();
  expect(peer.of(stream).length).toBe(before);
  expect(peer.of(stream, cancel)).toEqual([]);
});

test("a request cancelled before the end of its body is forgotten", async () => {
  const stream = peer.open(recordOf(bodyOf("hi")));
  peer.write(stream, "{");
  peer.cancel(stream, 2);
  await peer.settled();
  await expect.poll(async () => JSON.stringify(await requests())).toBe("[]");
});

async function requests(): Promise<unknown> {
  const stream = peer.open(["/weiche/requests"], "");
  await peer.ending(stream);
  return JSON.parse(String(peer.bodyOf(stream)));
}

test("the agent answers the last of several simultaneous PINGs", async () => {
  peer.pour(...["1", "2", "3"].map((text) => plainFrame(ping, 0, text.repeat(8))));
  const pongs = () => peer.of(0, pong).map(({ payload }) => String(payload));
  await peer.until("the PONG of the last PING", () => pongs().includes("33333333"));
  expect(pongs().at(-1)).toBe("33333333");
});

test("after a GOAWAY running streams end, the agent dials another connection, and the old one closes cleanly", async () => {
  const stream = ask("sim:tokens=50,itl=10 hi");
  await peer.until("a beginning", () => peer.bodyOf(stream).length > 0);
  const before = peer;
  before.pour(plainFrame(goaway, 0, ""));
  peer = await router.next();
  expect(await peer.ending(ask("sim:tokens=1 hi"))).toBe("end 0");
  expect(await before.ending(stream)).toBe("end 0");
  before.fin();
  await before.closed();
  expect(before.hasFin).toBe(true);
});

test("a broken rule is logged and counted, and other connections continue", async () => {
  const before = peer;
  before.pour(plainFrame(0, 0, ""));
  peer = await router.next();
  await before.closed();
  expect(before.farewell).toMatch(/type/);
  expect(await counter("weiche_agent_data_rules_broken_total", { rule: "type" })).toBe(1);
  expect(agent.output.join("\n")).toMatch(/"rule":"type"/);
  expect(await peer.ending(ask("sim:tokens=1 hi"))).toBe("end 0");
});

test("an agent leaves a silent router within 5 s and dials another connection", async () => {
  const running = ask("sim:tokens=100000,itl=5 hi");
  peer.answers = false;
  await peer.closed();
  expect(peer.farewell).toBeUndefined();
  await expect.poll(async () => (await engine.requests()).at(-1)).toMatchObject({ aborted: true });
  expect(await peer.ending(running).catch(String)).toMatch(/closed/);
  peer = await router.next();
});

test("if the engine dies before the answer begins, the answer is an error that ends with 2", async () => {
  const stream = ask("sim:tokens=50,fault=crash:0 hi");
  expect(await peer.ending(stream)).toBe("end 2");
  expect(peer.recordOf(stream)[0]).toBeGreaterThanOrEqual(500);
  expect(peer.recordOf(stream)[1]).toBe("json");
  expect(JSON.parse(String(peer.bodyOf(stream)))).toEqual({ error: errorShape });
});

test("the agent broke no rule during all these tests", () => {
  expect(router.peers.flatMap(({ broken }) => broken)).toEqual([]);
});
