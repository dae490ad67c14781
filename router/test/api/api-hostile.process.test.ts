/** Tests clients that break the rules of HTTP, are slow, or do not read. */
import { expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { chat, startApi, type Harness } from "./api-harness.ts";
import { RawClient, rawPost, settledCount, until } from "../edge/raw-client.ts";

const path = "/v1/chat/completions";
const body = JSON.stringify(chat());
const head = (...lines: string[]) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;
const good = "authorization: Bearer sk-good";
const type = "content-type: application/json";
const answersIn = (received: string) => received.match(/HTTP\/1\.1 \d+/g) ?? [];

test.each([
  ["garbage", "GARBAGE\r\n\r\n"],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["a head without a version", `GET ${path}\r\n\r\n`],
  ["a header without a colon", head("authorization Bearer sk-good")],
  ["a space before the colon", head("content-length : 5")],
  ["a folded header", head("x: a\r\n b")],
  ["a NUL in a header", head("x: a\0b")],
  ["two different lengths", head("content-length: 1", "content-length: 2")],
  ["a length and chunks", head("content-length: 5", "transfer-encoding: chunked")],
  ["a negative length", head("content-length: -1")],
  ["a length that is no number", head("content-length: 0x10")],
  ["an unknown transfer encoding", head("transfer-encoding: gzip, cow")],
  ["a head of 32 KB", head(`x: ${"a".repeat(32_768)}`)],
  ["a chunk without a size", `${head(good, type, "transfer-encoding: chunked")}zz\r\n`],
  ["two Host headers", `GET /v1/models HTTP/1.1\r\nhost: x\r\nhost: y\r\n${good}\r\n\r\n`],
  ["no Host header", `GET /v1/models HTTP/1.1\r\n${good}\r\n\r\n`],
  ["HTTP/2.0 in the request line", `GET /v1/models HTTP/2.0\r\nhost: x\r\n${good}\r\n\r\n`],
  ["HTTP/0.9 in the request line", `GET /v1/models HTTP/0.9\r\nhost: x\r\n${good}\r\n\r\n`],
  ["HTTP/1.2 in the request line", `GET /v1/models HTTP/1.2\r\nhost: x\r\n${good}\r\n\r\n`],
  ["gzip below the chunks", `${head(good, type, "transfer-encoding: gzip, chunked")}0\r\n\r\n`],
  [
    "gzip in a header of its own",
    `${head(good, type, "transfer-encoding: gzip", "transfer-encoding: chunked")}0\r\n\r\n`,
  ],
  ["identity below the chunks", `${head(good, type, "transfer-encoding: identity, chunked")}0\r\n\r\n`],
  ["chunks twice", `${head(good, type, "transfer-encoding: chunked, chunked")}0\r\n\r\n`],
  ["chunks in HTTP/1.0", head(good, type, "transfer-encoding: chunked").replace("HTTP/1.1", "HTTP/1.0") + "0\r\n\r\n"],
  ["a transfer coding and no chunks", head(good, type, "transfer-encoding: gzip")],
])("%s gets one 400 with an error object, and the connection is closed [D5 S18.1]", async (_name, bytes) => {
  await using api = await startApi();
  const received = await new RawClient(api.port).send(bytes).all();
  expect(answersIn(received)).toEqual(["HTTP/1.1 400"]);
  expect(received).toMatch(/x-request-id: [0-9a-f-]{36}\r\n/);
  expect(JSON.parse(received.split("\r\n\r\n")[1]!)).toMatchObject({ error: { code: "400", param: null } });
});

test("malformed bytes after a running request do not change its answer [D5]", async () => {
  await using api = await startApi();
  const { promise: held, resolve } = Promise.withResolvers<void>();
  api.nodes.script = () => ({ held });
  const client = new RawClient(api.port).send(rawPost(path, body));
  await until(() => api.nodes.open === 1);
  client.send("GARBAGE\r\n\r\n");
  await until(() => client.socket.writableLength === 0);
  resolve();
  expect(answersIn(await client.all())).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
  await until(() => api.nodes.open === 0);
});

test("requests in a row on one connection get one answer each, in order [D5]", async () => {
  await using api = await startApi();
  api.nodes.script = ({ body: sent }) => ({ chunks: [sent.toString().includes("first") ? '"first"' : '"second"'] });
  const request = (user: string) => rawPost(path, JSON.stringify(chat({ user })));
  const client = new RawClient(api.port).send(request("first") + request("second") + request("first"));
  await until(() => client.received.split('"first"').length === 3);
  expect(client.received.match(/"(first|second)"/g)).toEqual(['"first"', '"second"', '"first"']);
  client.socket.destroy();
});

test.each([
  ["half a head", `POST ${path} HTTP/1.1\r\nhost: x\r\n`, ["HTTP/1.1 408"]],
  ["nothing at all", "", ["HTTP/1.1 408"]],
])("a connection that sends %s is closed [D1]", async (_name, bytes, answers) => {
  await using api = await startApi({ times: { headersMsMax: 200 } });
  const started = performance.now();
  const received = await new RawClient(api.port).send(...(bytes ? [bytes] : [])).all();
  expect(answersIn(received)).toEqual(answers);
  expect(performance.now() - started).toBeGreaterThan(150);
});

async function trickle(api: Harness, clock: VirtualClock, steps: readonly [bytes: number, afterMs: number][]) {
  const client = new RawClient(api.port).send(head(good, type, "content-length: 10000000"));
  await until(() => clock.pending > 0);
  for (const [bytes, afterMs] of steps) {
    client.send(Buffer.alloc(bytes, 32));
    await until(() => client.socket.bytesWritten > 0 && client.socket.writableLength === 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await clock.advanceAsync(afterMs);
  }
  return client;
}

test("a body may take 60 s and one more second for every 250 KB received, however slowly it arrives [D1]", async () => {
  const clock = new VirtualClock();
  await using api = await startApi({ clock });
  const client = await trickle(api, clock, [
    [100_000, 59_000],
    [150_000, 1_999],
  ]);
  expect(api.finished).toEqual([]);
  clock.advance(1);
  await until(() => client.received !== "");
  expect(client.received).toMatch(/^HTTP\/1.1 400 .*did not arrive in time/s);
  client.socket.destroy();
});

test("a body that stops is refused after 60 s [D1]", async () => {
  const clock = new VirtualClock();
  await using api = await startApi({ clock });
  const client = await trickle(api, clock, [[10, 59_999]]);
  expect(api.finished).toEqual([]);
  clock.advance(2);
  await until(() => client.received.startsWith("HTTP/1.1 400 "));
  expect(client.isEnded).toBe(false);
  clock.advance(5_000);
  await until(() => client.isEnded);
  client.socket.destroy();
});

test.each([
  ["401", head("authorization: Bearer sk-wrong", type, `content-length: ${30 << 20}`)],
  ["413", head(good, type, `content-length: ${30 << 20}`)],
  ["413", head(good, type, "transfer-encoding: chunked").concat(`${(30 << 20).toString(16)}\r\n`)],
  ["401", head("authorization: Bearer sk-wrong", type, `content-length: ${30 << 20}`, "connection: close")],
])("an early %s stays readable to a client that sends its 30 MB first", async (status, start) => {
  await using api = await startApi();
  const client = new RawClient(api.port).send(start);
  client.socket.pause();
  for (let sent = 0; sent < 30; sent++)
    await new Promise((resolve) => client.socket.write(Buffer.alloc(1 << 20, 32), resolve));
  client.socket.resume();
  await until(() => client.received.includes("\r\n\r\n"));
  expect(client.received.slice(9, 12)).toBe(status);
  client.socket.destroy();
});

test("a refused client that continues to send is cut when the time for discarding ends", async () => {
  await using api = await startApi({ times: { discardMs: 200 } });
  const client = new RawClient(api.port).send(
    head("authorization: Bearer sk-wrong", type, "transfer-encoding: chunked"),
  );
  const sending = setInterval(() => client.send("5\r\nhello\r\n"), 10);
  await until(() => client.isEnded || client.socket.destroyed);
  clearInterval(sending);
  expect(answersIn(client.received)).toEqual(["HTTP/1.1 401"]);
});

test("after a small refusal the connection is kept", async () => {
  await using api = await startApi();
  const wrong = rawPost(path, body).replace("sk-good", "sk-wrong");
  const client = new RawClient(api.port).send(wrong);
  await until(() => client.received.includes("}}"));
  client.send(rawPost(path, body));
  await until(() => client.received.endsWith('{"ok":true}'));
  expect(answersIn(client.received)).toEqual(["HTTP/1.1 401", "HTTP/1.1 200"]);
  client.socket.destroy();
});

test("a client with `expect: 100-continue` receives 100 only when the router accepts its body [S13.8]", async () => {
  await using api = await startApi();
  const length = `content-length: ${body.length}`;
  const client = new RawClient(api.port).send(head(good, type, length, "expect: 100-continue"));
  await until(() => client.received.includes("100 Continue"));
  client.send(body);
  await until(() => client.received.endsWith('{"ok":true}'));
  client.socket.destroy();
  const refused = await new RawClient(api.port)
    .send(head("authorization: Bearer x", type, length, "expect: 100-continue"))
    .all();
  expect(answersIn(refused)).toEqual(["HTTP/1.1 401"]);
});

test("a client that does not read slows its node down and is then cut [D3]", async () => {
  await using api = await startApi({ times: { stallMsMax: 1_000 } });
  let made = 0;
  api.nodes.script = () => ({
    kind: "events",
    chunks: (function* () {
      for (;;) yield ((made++, `data: ${"x".repeat(16_000)}\n\n`));
    })(),
  });
  const client = new RawClient(api.port);
  client.socket.pause();
  client.send(rawPost(path, body));
  await until(() => made > 0);
  const madeByThen = await settledCount(() => made);
  await until(() => api.finished.length === 1);
  expect(made).toBe(madeByThen);
  expect(api.nodes.open).toBe(0);
  expect(api.finished).toMatchObject([{ outcome: "stalled" }]);
  client.socket.destroy();
});

test("a client that reads slowly receives the whole answer [D3]", async () => {
  await using api = await startApi({ times: { stallMsMax: 2_000 } });
  const chunk = `data: ${"y".repeat(50_000)}\n\n`;
  api.nodes.script = () => ({ kind: "events", chunks: Array.from({ length: 400 }, () => chunk) });
  const client = new RawClient(api.port).send(rawPost(path, body, ["connection: close"]));
  const hiccups = setInterval(() => (client.socket.isPaused() ? client.socket.resume() : client.socket.pause()), 5);
  await client.all(30_000);
  clearInterval(hiccups);
  expect(client.received.split("data: ").length).toBe(401);
  expect(client.received.endsWith("0\r\n\r\n")).toBe(true);
}, 40_000);

test("a slow client whose request times out still receives the written bytes and the error event", async () => {
  await using api = await startApi({ requestMsMax: 300, times: { graceMs: 100 } });
  const event = `data: ${"y".repeat(15_000)}\n\n`;
  api.nodes.script = () => ({
    kind: "events",
    chunks: (function* () {
      for (;;) yield event;
    })(),
  });
  const client = new RawClient(api.port);
  client.socket.pause();
  client.send(rawPost(path, body));
  await until(() => api.nodes.sent.length === 1 && api.nodes.open === 0);
  client.socket.resume();
  const received = await client.all();
  expect(received.slice(-200)).toMatch(/y\n\n\r\n.*data: \{"error":\{[^\n]*"timeout"\}\}\n\n\r\n$/s);
  expect(api.finished).toMatchObject([{ outcome: "timeout", status: 200 }]);
});
