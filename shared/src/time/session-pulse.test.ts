import { once } from "node:events";
import {
  connect as connectHttp2,
  performServerHandshake,
  type ClientHttp2Session,
  type ServerHttp2Session,
} from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LoopClock } from "./loop-clock.ts";
import { watchPulse } from "./session-pulse.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";

const clock = new VirtualClock();
let opened: AsyncDisposableStack;
let client: ClientHttp2Session;
let server: ServerHttp2Session;
let wire: readonly Socket[];
let lost: number;

/** A session over real connections, with a wire in between that can fall silent. One stream is open. */
beforeEach(async () => {
  opened = new AsyncDisposableStack();
  lost = 0;
  const [near, dialled] = await connection();
  const [accepted, far] = await connection();
  wire = [near, far];
  near.pipe(far).pipe(near);
  server = performServerHandshake(accepted);
  server.on("stream", (stream) => stream.on("error", () => {}).respond({ ":status": 200 }));
  client = connectHttp2("http://peer", { createConnection: () => dialled });
  for (const session of [server, client]) session.on("error", () => {});
  const stream = client.request({ ":path": "/" }).on("error", () => {});
  await once(stream, "response");
  watchPulse(client, opened.use(new LoopClock(clock)), () => lost++);
});
afterEach(() => opened.disposeAsync());

/** Both ends of a connection. */
async function connection(): Promise<readonly [Socket, Socket]> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const dialled = connect((listener.address() as { port: number }).port, "127.0.0.1");
  const [accepted] = (await once(listener, "connection")) as [Socket];
  listener.close();
  for (const socket of [dialled, accepted]) opened.defer(() => void socket.on("error", () => {}).destroy());
  return [accepted, dialled];
}

test("a session whose peer answers is alive, however long", async () => {
  for (let beats = 0; beats < 10; beats++) {
    const answered = once(server, "ping");
    await clock.advanceAsync(1_000);
    await answered;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(lost).toBe(0);
});

test("one whose peer falls silent is lost after 4 s, once", async () => {
  for (const socket of wire) socket.unpipe().pause();
  await clock.advanceAsync(3_900);
  expect(lost).toBe(0);
  await clock.advanceAsync(100);
  expect(lost).toBe(1);
  await clock.advanceAsync(60_000);
  expect(lost).toBe(1);
});

test.each([3_000, 5_000, 8_000])(
  "our own loop stands still for %s ms: an answer that waits to be read counts",
  async (ms) => {
    await clock.advanceAsync(900);
    const answered = once(server, "ping");
    await clock.advanceAsync(100);
    clock.stall(ms);
    clock.advance(0); // timers fire first, then waiting bytes are read
    expect(lost).toBe(0);
    await answered;
    await new Promise((resolve) => setTimeout(resolve, 20));
    await clock.advanceAsync(2_900);
    expect(lost).toBe(0);
  },
);

test.each([3_000, 5_000, 8_000])(
  "a peer that is silent while our own loop stands still for %s ms is lost 4 s after",
  async (ms) => {
    for (const socket of wire) socket.unpipe().pause();
    await clock.advanceAsync(1_000);
    clock.stall(ms);
    clock.advance(2_700);
    expect(lost).toBe(0);
    clock.advance(1_300);
    expect(lost).toBe(1);
  },
);

test.each(["client", "server"])("one that its %s closes goes on for as long as something runs on it", async (who) => {
  const goesAway = once(client, "goaway");
  (who === "client" ? client : server).close();
  if (who === "server") await goesAway;
  await clock.advanceAsync(60_000);
  expect([lost, client.destroyed]).toEqual([0, false]);
});

test("one that closes while a ping is on its way goes on, too", async () => {
  const pinged = once(server, "ping");
  await clock.advanceAsync(1_000);
  client.close();
  await pinged;
  await clock.advanceAsync(60_000);
  expect(lost).toBe(0);
});
