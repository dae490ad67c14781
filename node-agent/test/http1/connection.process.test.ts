/** Connections to servers that send exactly the bytes of a script. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { afterEach, expect, test } from "vitest";
import { HttpConnection, type HttpAddress, type HttpError } from "../../src/http1/connection.ts";

const servers: Server[] = [];
const sockets = new Set<Socket>();
const connections: HttpConnection[] = [];
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Starts a server that runs this script for each connection, and returns its address. */
async function serve(script: (socket: Socket) => void): Promise<HttpAddress> {
  return { origin: `http://127.0.0.1:${await listen(createServer(script))}` };
}

function connectTo(address: HttpAddress): HttpConnection {
  const connection = new HttpConnection(address, new VirtualClock());
  connections.push(connection);
  return connection;
}

/** Sends a POST. Resolves with its outcome. */
function post(connection: HttpConnection, body: Buffer, onBody = (_bytes: Buffer): void => {}) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string; isFree: boolean }>();
  let status = 0;
  const parts: Buffer[] = [];
  connection.send(
    { method: "POST", path: "/", body, keep: true },
    {
      onHead: (given) => (status = given),
      onBody(bytes) {
        parts.push(bytes);
        onBody(bytes);
      },
      onEnd: () => resolve({ status, text: Buffer.concat(parts).toString(), isFree: connection.isFree }),
      onLost: reject,
    },
  );
  return promise;
}

const whole = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
const answering = (text: string) => (socket: Socket) => void socket.on("data", () => socket.write(whole(text)));
const hi = { status: 200, text: "hi", isFree: true };

test("a connection carries one request after another", async () => {
  const connection = connectTo(await serve(answering("hi")));
  for (let n = 0; n < 3; n++) expect(await post(connection, Buffer.from("{}"))).toEqual(hi);
});

test("a body without a length ends with the connection, which carries no further request", async () => {
  const address = await serve((socket) => void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nhi")));
  const connection = connectTo(address);
  expect(await post(connection, Buffer.from("{}"))).toEqual({ ...hi, isFree: false });
  expect(connection.isFree).toBe(false);
});

test("a request of any length arrives unchanged", async () => {
  const saw = Promise.withResolvers<Buffer>();
  const address = await serve((socket) => {
    let bytes = Buffer.alloc(0);
    socket.on("data", (part: Buffer) => {
      bytes = Buffer.concat([bytes, part]);
      const length = Number(/content-length: (\d+)/.exec(bytes.toString("latin1"))?.[1]);
      const start = bytes.indexOf("\r\n\r\n") + 4;
      if (bytes.length !== start + length) return;
      saw.resolve(bytes.subarray(start));
      socket.write(whole("hi"));
    });
  });
  const body = Buffer.alloc(3 << 20, "abcdefghijk");
  expect(await post(connectTo(address), body)).toEqual(hi);
  expect((await saw.promise).equals(body)).toBe(true);
});

test("data of one connection is not overwritten when another one reads", async () => {
  const address = await serve((socket) => {
    socket.once("data", (request: Buffer) => {
      const body = Buffer.alloc(1 << 20, request.at(-1)!);
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`);
      socket.write(body);
    });
  });
  const letters = "abcdefgh".split("");
  const answers = await Promise.all(letters.map((letter) => post(connectTo(address), Buffer.from(letter))));
  expect(answers.map(({ text }) => text === text[0]!.repeat(1 << 20) && text[0])).toEqual(letters);
});

test("a body in chunks of one byte is passed on in as few pieces as it was read in [D10]", async () => {
  const chunks = 2_000;
  const address = await serve((socket) => {
    const body = `${"1\r\na\r\n".repeat(chunks)}0\r\n\r\n`;
    socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`));
  });
  let pieces = 0;
  const answer = await post(connectTo(address), Buffer.from("{}"), () => pieces++);
  expect(answer).toMatchObject({ status: 200, text: "a".repeat(chunks) });
  expect(pieces).toBeLessThan(20);
});

test("a paused connection reads nothing, and later continues at the same place", async () => {
  const address = await serve((socket) => {
    socket.once("data", () => {
      const body = Buffer.alloc(8 << 20, "x");
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`);
      socket.write(body);
    });
  });
  const connection = connectTo(address);
  const begun = Promise.withResolvers<void>();
  let bytes = 0;
  const answer = post(connection, Buffer.from("{}"), (part) => {
    if (bytes === 0) connection.pause();
    bytes += part.length;
    begun.resolve();
  });
  await begun.promise;
  const held = bytes;
  for (let turns = 0; turns < 50; turns++) await turn();
  expect(bytes).toBe(held);
  connection.resume();
  expect((await answer).text.length).toBe(8 << 20);
});

test("an answer that arrives while the request is still being sent ends the connection", async () => {
  const address = await serve((socket) => {
    socket.once("data", () => {
      socket.pause();
      socket.write(whole("no"));
    });
  });
  const connection = connectTo(address);
  expect(await post(connection, Buffer.alloc(64 << 20))).toEqual({ status: 200, text: "no", isFree: false });
  expect(connection.isFree).toBe(false);
});

test.each<[what: string, act: (socket: Socket) => void]>([
  ["is ended", (socket) => socket.end()],
  ["is reset", (socket) => void socket.resetAndDestroy()],
  ["says something", (socket) => void socket.write(whole("more"))],
])("a kept connection that %s while it is idle is closed", async (_what, act) => {
  const connection = connectTo(await serve(answering("hi")));
  await post(connection, Buffer.from("{}"));
  const ended = new Promise<void>((resolve) => (connection.onIdleEnd = resolve));
  act([...sockets][0]!);
  await ended;
  expect(connection.isFree).toBe(false);
});

test.each<[failure: HttpError["failure"], script: (socket: Socket) => void]>([
  ["lost", (socket) => socket.end()],
  ["lost", (socket) => void socket.resetAndDestroy()],
  ["malformed", (socket) => void socket.write("HTTP/9\r\n\r\n")],
])("an incomplete answer is %s, and the connection is closed", async (failure, script) => {
  const address = await serve((socket) => void socket.once("data", () => script(socket)));
  const connection = connectTo(address);
  await expect(post(connection, Buffer.from("{}"))).rejects.toMatchObject({ failure });
  expect(connection.isFree).toBe(false);
});

test("without a listener a request is refused", async () => {
  for (const address of [
    { origin: "http://127.0.0.1:1" },
    { origin: "http://engine", socketPath: "/nonexistent/engine.sock" },
  ])
    await expect(post(connectTo(address), Buffer.from("{}"))).rejects.toMatchObject({ failure: "refused" });
});

test("a request to a name that does not resolve is lost, with that reason", async () => {
  const answer = post(connectTo({ origin: "http://nobody.invalid:80" }), Buffer.from("{}"));
  await expect(answer).rejects.toMatchObject({ failure: "lost", message: expect.stringMatching(/nobody/) as string });
});

test("a connection that is closed before it is established makes no calls", async () => {
  const connection = connectTo(await serve(answering("hi")));
  const heard: string[] = [];
  const answer = post(connection, Buffer.from("{}"));
  answer.then(
    () => heard.push("answered"),
    () => heard.push("lost"),
  );
  connection.close();
  for (let turns = 0; turns < 50; turns++) await turn();
  expect(heard).toEqual([]);
});

test("a connection is read at most once in each turn of the event loop, however much has arrived [D10]", async () => {
  const bytes = 4 << 20;
  const address = await serve((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n`);
    socket.write(Buffer.alloc(bytes, "x"));
  });
  const connection = connectTo(address);
  let [inTurn, mostInTurn] = [0, 0];
  const onBody = () => (mostInTurn = Math.max(mostInTurn, ++inTurn));
  const asked = post(connection, Buffer.from("{}"), onBody);
  let isOver = false;
  void asked.finally(() => (isOver = true));
  for (; !isOver; inTurn = 0) await turn();
  expect((await asked).text).toHaveLength(bytes);
  expect(mostInTurn).toBe(1);
});
