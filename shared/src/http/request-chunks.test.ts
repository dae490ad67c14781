/** Tests chunked bodies on connections that `readOneAtATime` reads. */
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { linesPerTurn } from "./line-turns.ts";
import { chunked, end, get, settled, startTurns, until } from "../testing/turns-server.ts";

test("few requests after a chunked body begin before the answer to it", async () => {
  await using server = await startTurns();
  server.connect().socket.write(chunked("/", "x") + get("/").repeat(1_500));
  await until(() => server.handed.length > 0);
  await settled();
  expect(server.handed.length).toBeLessThan(60);
});

// The clients usually send more than the server holds of a connection, so that the socket is paused.
test.each([
  ["a handler that reads", {}],
  ["an answer that has ended", {}],
  ["few chunks of many connections", { clients: 100, chunks: 60 }],
  ["chunks that end like heads", { chunk: "10\r\naaaaaaaaaaaaaaa\n\r\n" }],
])("chunks of one byte share the turns of the event loop: %s [D5]", async (which, more) => {
  const { clients: count, chunks, chunk } = { clients: 20, chunks: 4_000, chunk: "1\r\na\r\n", ...more };
  const wanted = chunks * parseInt(chunk, 16);
  let bytes = 0;
  let most = 0;
  await using server = await startTurns((request, response) => {
    request.on("data", (text: string) => (bytes += text.length));
    if (which === "an answer that has ended") response.end("no");
  });
  const clients = Array.from({ length: count }, () => server.connect());
  for (const { socket } of clients) socket.write("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  await until(() => server.handed.length === count);
  for (const { socket } of clients) socket.write(chunk.repeat(chunks));
  while (bytes < count * wanted) {
    const before = bytes;
    await nextTurn();
    most = Math.max(most, bytes - before);
  }
  // Up to two turns of the event loop may pass between two checks.
  const chunksPerTurn = linesPerTurn / 2;
  expect(most).toBeLessThanOrEqual(2 * chunksPerTurn * parseInt(chunk, 16));
  const end = "0\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const { socket } of clients) socket.write(end);
  await until(() => server.handed.every(({ url, body }) => url === "/b" || body.length === wanted));
  for (const { response } of server.handed) response.end();
  await until(() => server.handed.filter(({ url }) => url === "/b").length === count);
});

test("few chunks of an unread body are held, and all of it arrives once it is read", async () => {
  const requests: IncomingMessage[] = [];
  await using server = await startTurns((request) => void requests.push(request.pause()));
  const bytes = 40_000;
  server.connect().socket.write(chunked("/", ...Array.from({ length: bytes }, () => "x")));
  await until(() => requests.length === 1);
  await settled();
  const [request] = requests as [IncomingMessage];
  expect(request.readableLength).toBeGreaterThan(0);
  expect(request.readableLength).toBeLessThanOrEqual(linesPerTurn);
  request.resume();
  await until(() => request.complete);
  expect(server.handed[0]!.body.length).toBe(bytes);
});

test("few bytes of a body in short chunks are read ahead, though Node's server resumes the socket", async () => {
  await using server = await startTurns();
  const chunk = "1\r\na\r\n";
  const head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
  server.connect().socket.write(head + chunk.repeat(1_000_000));
  await until(() => server.handed.length === 1);
  const [request] = server.handed;
  const socket = request!.response.socket!;
  while (request!.body.length < 20_000) {
    await nextTurn();
    // Node does so for each piece of the body, and sometimes twice in one turn.
    socket.once("resume", () => socket.resume());
    socket.resume();
  }
  expect(socket.bytesRead - chunk.length * request!.body.length).toBeLessThan(300_000);
});

test("the bytes of a body in short chunks are searched for the end of a head only once, not for each piece", async () => {
  await using server = await startTurns(end);
  let searched = 0;
  const { indexOf } = Buffer.prototype;
  function search(this: Buffer, ...given: unknown[]): unknown {
    const [what, from = 0] = given as [unknown, number?];
    if (what === "\n\r\n") searched += Math.max(0, this.length - from);
    return Reflect.apply(indexOf, this, given);
  }
  const spy = vi.spyOn(Buffer.prototype, "indexOf").mockImplementation(search);
  const text = chunked("/", ...Array.from({ length: 20_000 }, () => "x"));
  const client = server.connect();
  client.socket.write(text);
  await until(() => client.received.includes("200 OK") && server.handed[0]!.body.length === 20_000);
  spy.mockRestore();
  expect(searched).toBeLessThan(2 * text.length);
});
