/** Tests requests, their answers and connections. `request-chunks.test.ts` has chunked bodies. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { chunked, end, get, post, settled, startTurns, until } from "../testing/turns-server.ts";

test("the server emits the second request once the first is answered", async () => {
  await using server = await startTurns();
  server.connect().socket.write(get("/1") + get("/2") + get("/3"));
  for (const count of [1, 2, 3]) {
    await until(() => server.handed.length === count);
    await settled();
    expect(server.handed.length).toBe(count);
    server.handed.at(-1)!.response.end();
  }
});

test("the server emits few requests per turn of the event loop, even if each is answered at once", async () => {
  await using server = await startTurns(end);
  const client = server.connect();
  client.socket.write(get("/").repeat(2_000));
  await until(() => client.received.split("HTTP/1.1 200").length === 2_001);
  const inTurn = Map.groupBy(server.handed, ({ turn }) => turn);
  expect(Math.max(...[...inTurn.values()].map((handed) => handed.length))).toBeLessThanOrEqual(4);
});

test("waiting requests stay in the socket, except for a few KB", async () => {
  await using server = await startTurns();
  const { socket } = server.connect();
  const flood = get("/").repeat(40_000);
  for (let n = 0; n < 20; n++) socket.write(flood);
  await until(() => server.handed.length === 1);
  await settled();
  const [peer] = await new Promise<Socket[]>((resolve) => resolve([server.handed[0]!.response.socket!]));
  expect(peer!.bytesRead).toBeLessThan(1_000_000);
  expect(socket.writableLength).toBeGreaterThan(10_000_000);
  expect(server.handed.length).toBe(1);
});

test("each request arrives whole, in order, and is answered, whatever the pieces [D5]", async () => {
  await using server = await startTurns((request, response) => void request.on("end", () => response.end("ok")));
  const bodies = ["", "x", "a\n\r\nb\r\n\r\n", "y".repeat(5_000), get("/inside").repeat(100)];
  const text = bodies
    .flatMap((body, n) => [get(`/get${n}`), post(`/length${n}`, body), chunked(`/chunks${n}`, "1", body || "2")])
    .join("");
  const wanted = bodies.flatMap((body, n) => [
    [`/get${n}`, ""],
    [`/length${n}`, body],
    [`/chunks${n}`, `1${body || "2"}`],
  ]);
  for (const size of [1, 2, 3, 7, 64, 1_000, text.length]) {
    server.handed.length = 0;
    const client = server.connect();
    client.socket.setNoDelay();
    for (let at = 0; at < text.length; at += size) {
      client.socket.write(text.slice(at, at + size));
      // Sometimes the bytes up to here arrive separately.
      if (size > 1 || at % 97 === 0) await nextTurn();
    }
    await until(() => client.received.split("HTTP/1.1 200").length === wanted.length + 1);
    expect(server.handed.map(({ url, body }) => [url, body])).toEqual(wanted);
    expect(client.isClosed).toBe(false);
  }
});

test.each([
  ["a body with a length", post("/", "x".repeat(60_000))],
  ["a body that looks like heads", post("/", get("/").repeat(2_000))],
  ["a head in two pieces", `${post("/", `${"x".repeat(100)}\n\r\n`)}`],
])("no request after %s begins before the answer to it", async (_name, first) => {
  await using server = await startTurns();
  const client = server.connect();
  const cut = first.indexOf("\r\n\r\n") + 2;
  client.socket.setNoDelay().write(first.slice(0, cut));
  await settled();
  client.socket.write(first.slice(cut) + get("/next").repeat(3_000));
  await until(() => server.handed.length === 1);
  await settled();
  expect(server.handed.length).toBe(1);
});

test("a client's disconnect is noticed even if a second request waits", async () => {
  await using server = await startTurns();
  const client = server.connect();
  client.socket.write(get("/1") + get("/2"));
  await until(() => server.handed.length === 1);
  let isClosed = false;
  server.handed[0]!.response.once("close", () => (isClosed = true));
  client.socket.end();
  await until(() => isClosed);
  expect(server.handed.length).toBe(1);
});

test("requests after an answer that closes the connection are not read", async () => {
  await using server = await startTurns((_request, response) => {
    response.shouldKeepAlive = false;
    response.end("over");
  });
  const client = server.connect();
  client.socket.write(get("/").repeat(3_000));
  await until(() => client.isClosed);
  expect(server.handed.length).toBe(1);
});

test("bytes of a tunnel reach no parser, even if the parser serves another connection by then", async () => {
  await using server = await startTurns(end);
  const tunnels: Duplex[] = [];
  server.server.on("connect", (_request, socket) => tunnels.push(socket.on("error", () => {}).resume()));
  const client = server.connect();
  client.socket.write(`CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n${get("/behind")}`);
  await until(() => tunnels.length === 1);
  const other = server.connect();
  other.socket.write("GET /other HTTP/1.1\r\n");
  await settled();
  client.socket.write("x-from: the tunnel\r\n\r\n");
  await settled();
  expect(server.handed).toEqual([]);
  other.socket.write("host: x\r\n\r\n");
  await until(() => other.received.endsWith("ok"));
  expect(server.handed.map(({ url }) => url)).toEqual(["/other"]);
  for (const tunnel of tunnels) tunnel.destroy();
});

test.each([
  ["empty lines", "\r\n"],
  ["many empty lines", "\r\n".repeat(100)],
  ["half a head", "GET / HTTP/1.1\r\nx: y\r\n"],
  ["one byte", "G"],
])("%s keep a connection open for at most 20 s, before the first request and after it", async (_name, bytes) => {
  for (const isFirst of [true, false]) {
    await using server = await startTurns(end);
    const client = server.connect();
    if (!isFirst) {
      client.socket.write(get("/"));
      await until(() => client.received.endsWith("ok"));
    }
    for (let second = 0; second < 20; second++) {
      expect(client.isClosed).toBe(false);
      client.socket.write(
        bytes === "G" && second > 0 ? "" : second > 0 && bytes.startsWith("GET") ? "x: y\r\n" : bytes,
      );
      await until(() => server.clock.pending === 1);
      server.clock.advance(1_000);
    }
    await until(() => client.isClosed);
    expect(server.clock.pending).toBe(0);
  }
});

test("an empty line before a request is harmless", async () => {
  await using server = await startTurns(end);
  const client = server.connect();
  client.socket.write(`\r\n${get("/1")}\r\n${get("/2")}`);
  await until(() => client.received.split("HTTP/1.1 200").length === 3);
  await until(() => server.clock.pending === 0);
  expect(server.handed.map(({ url }) => url)).toEqual(["/1", "/2"]);
});

test.each([
  ["a length", `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n`, "x"],
  ["chunks", `POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`, "1\r\nx\r\n"],
])("a slow body with %s is cut 5 s after the answer to its request", async (_name, head, drop) => {
  await using server = await startTurns(
    (request, response) => (request.removeAllListeners("data"), end(request, response)),
  );
  const client = server.connect();
  client.socket.write(head);
  await until(() => client.received.endsWith("ok"));
  for (let second = 0; second < 5; second++) {
    expect(client.isClosed).toBe(false);
    client.socket.write(drop);
    await until(() => server.clock.pending === 1);
    server.clock.advance(1_000);
  }
  await until(() => client.isClosed);
});

test("a body that arrives whole after its answer leaves the connection open", async () => {
  await using server = await startTurns(end);
  const client = server.connect();
  client.socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n`);
  await until(() => server.clock.pending === 1);
  client.socket.write("abc");
  await until(() => server.clock.pending === 0);
  client.socket.write(get("/next"));
  await until(() => server.handed.length === 2);
  expect(client.isClosed).toBe(false);
});

test("an unread answer is cut after 60 s plus one second for every 25 KB", async () => {
  await using server = await startTurns((_request, response) => void response.end("x".repeat(50_000_000)));
  const client = server.connect();
  client.socket.pause();
  client.socket.write(get("/"));
  await until(() => server.clock.pending === 1);
  const { response } = server.handed[0]!;
  let isClosed = false;
  response.once("close", () => (isClosed = true));
  server.clock.advance(1_900_000);
  await settled();
  expect(isClosed).toBe(false);
  server.clock.advance(200_000);
  await until(() => isClosed);
});
