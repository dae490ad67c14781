/** Tests how connections end: in order, after a broken rule, or because the peer disconnects or falls silent. */
import { once } from "node:events";
import { expect, test } from "vitest";
import { openFramePair } from "../testing/frame-pair.ts";
import { rawFrame, rawFrames } from "../testing/raw-frames.ts";
import { SimSocket } from "../testing/sim-socket.ts";
import { SimStream } from "../testing/sim-stream.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { FrameConnection } from "./frame-connection.ts";
import { frames } from "./frame.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Accepts streams, begins to answer them, and leaves the rest to the test. */
function holding() {
  const taken: SimStream[] = [];
  const take = (stream: SimStream) => {
    taken.push(stream);
    stream.begin();
    stream.frames.write("begun ");
  };
  return { taken, take };
}

const roles = ["router", "agent"] as const;

/** Opens an end whose peer is the test. */
function openEnd(role: (typeof roles)[number] = "agent") {
  const clock = new VirtualClock();
  const socket = new SimSocket();
  const told: unknown[] = [];
  const connection = new FrameConnection(socket.asSocket, {
    clock,
    ...(role === "agent" ? { take: (stream) => SimStream.taken(stream) } : {}),
    closed: (reason, broken) => told.push(reason, broken),
  });
  return { socket, told, connection, clock };
}

const pingOf = (mark = 0) => rawFrame(frames.ping, 0, Buffer.alloc(8, mark));
const pongs = rawFrame(frames.pong, 0, Buffer.alloc(8));

/**
 * Acts as the peer for some seconds, and calls `say` in the middle of each second. Returns the PINGs and PONGs of each
 * second.
 */
async function seconds(end: ReturnType<typeof openEnd>, count: number, say: (second: number) => void) {
  const came: string[] = [];
  for (let second = 0; second < count; second++) {
    await end.clock.advanceAsync(500);
    say(second);
    await end.clock.advanceAsync(500);
    await turn();
    const types = rawFrames(end.socket.written()).map(({ type }) => type);
    came.push(types.map((type) => ({ [frames.ping]: "ping", [frames.pong]: "pong" })[type] ?? "other").join(" "));
  }
  return came;
}

test.each(["router", "agent"] as const)(
  "a connection closed by its %s accepts no streams, finishes the open ones, and ends without an error",
  async (who) => {
    const { taken, take } = holding();
    await using pair = await openFramePair(take);
    const errors: unknown[] = [];
    for (const socket of pair.sockets) socket.on("error", (error) => errors.push(error));
    const asked = SimStream.open(pair.router, [1]);
    const answer = asked.read();
    await expect.poll(() => taken.length).toBe(1);
    pair[who].goAway();
    await expect.poll(() => [pair.router.isOpen, pair.agent.isOpen]).toEqual([false, false]);
    expect(pair.router.open("[2]", new SimStream())).toBeUndefined();
    expect(pair.closed).toEqual({});
    taken[0]!.finish("done");
    expect(String(await answer)).toBe("begun done");
    await expect.poll(() => Object.keys(pair.closed).length).toBe(2);
    expect([taken.length, errors]).toEqual([1, []]);
  },
);

test("streams that race the end are refused, and open streams are completed, at any number and time", async () => {
  for (let turns = 0; turns < 8; turns++) {
    const { taken, take } = holding();
    await using pair = await openFramePair(take);
    const asked = Array.from({ length: 20 }, () => SimStream.open(pair.router, [1]));
    const answers = asked.map((stream) => stream.read());
    for (let n = 0; n < turns; n++) await turn();
    pair.agent.goAway();
    const racing = pair.router.isOpen ? Array.from({ length: 20 }, () => SimStream.open(pair.router, [2])) : [];
    for (const stream of racing) void stream.read();
    await expect.poll(() => pair.router.isOpen).toBe(false);
    const refused = () => [...asked, ...racing].filter(({ lostBy }) => lostBy !== undefined);
    await expect.poll(() => refused().length + taken.length).toBe(asked.length + racing.length);
    for (const stream of taken) stream.finish("done");
    await Promise.all(answers);
    expect(asked.filter(({ lostBy }) => lostBy === undefined).length).toBe(taken.length);
    // A stream that was sent while the connection closed is lost. The agent has not worked on it.
    expect(refused().every(({ lostBy }) => lostBy === "refused" || lostBy === "lost")).toBe(true);
    await expect.poll(() => Object.keys(pair.closed).length).toBe(2);
  }
});

test("a peer that breaks a rule gets a GOAWAY with the reason before its connection is closed", async () => {
  const { taken, take } = holding();
  await using pair = await openFramePair(take);
  const asked = SimStream.open(pair.router, [1]);
  await once(asked, "data");
  pair.sockets[0].write(rawFrame(10, 1, "x"));
  await expect
    .poll(() => pair.closed)
    .toEqual({
      agent: 'a frame of type 10 (rule "type")',
      router: 'the peer closed the connection: a frame of type 10 (rule "type")',
    });
  expect([asked.lostBy, taken[0]!.lostBy]).toEqual(["lost", "lost"]);
});

test("frames after a broken rule are ignored, and a peer that does not read the GOAWAY is disconnected", async () => {
  const { socket, told, clock } = openEnd();
  socket.destroySoon = () => {}; // the socket cannot send its bytes
  socket.say(rawFrame(0, 1, "x"));
  expect(told[1]).toBe("type");
  for (let n = 0; n < 4; n++) {
    expect(socket.destroyed).toBe(false);
    socket.say(Buffer.concat([rawFrame(frames.head, 1, "[]"), rawFrame(frames.ping, 0, Buffer.alloc(8))]));
    await clock.advanceAsync(1_000);
  }
  expect([socket.destroyed, told.length]).toEqual([true, 2]);
});

test.each([
  ["ends its side", (socket: SimSocket) => socket.emit("end")],
  ["disconnects", (socket: SimSocket) => socket.destroy()],
  ["fails", (socket: SimSocket) => (socket.emit("error", new Error("ECONNRESET")), socket.destroy())],
])("a stream whose peer %s before the END is lost", async (_what, goes) => {
  const { socket, told, connection } = openEnd();
  socket.say(rawFrame(frames.head, 1, "[]"));
  expect(connection.streams).toBe(1);
  goes(socket);
  await turn();
  expect([connection.streams, told.length, connection.isOpen]).toEqual([0, 2, false]);
});

test("after the connection is lost, a received answer still reaches its sink, and a cancelled one does not", async () => {
  const socket = new SimSocket();
  const router = new FrameConnection(socket.asSocket, { clock: new VirtualClock(), closed() {} });
  const [whole, broken] = [SimStream.open(router, [1]), SimStream.open(router, [2])];
  for (const { frames: stream } of [whole, broken]) stream.pause();
  for (const id of [1, 2]) socket.say(Buffer.concat([rawFrame(1, id, "[200]"), rawFrame(2, id, "text")]));
  socket.say(rawFrame(3, 1, [0]));
  socket.destroy();
  await turn();
  expect([String(await whole.read()), whole.ending, whole.lostBy]).toEqual(["text", 0, undefined]);
  expect([String(await broken.read()), broken.ending, broken.lostBy]).toEqual(["", undefined, "lost"]);
});

test.each(roles)("a %s's end sends a PING at once, and answers the other end's PING", async (role) => {
  const { socket } = openEnd(role);
  await turn();
  expect(rawFrames(socket.written()).map(({ type }) => type)).toEqual([frames.ping]);
  socket.say(pingOf(7));
  await turn();
  expect(rawFrames(socket.written()).map(({ type, payload }) => [type, payload[0]])).toEqual([[frames.pong, 7]]);
});

test("only the agent's end of an idle connection sends a PING each second", async () => {
  const [router, agent] = [openEnd("router"), openEnd("agent")];
  await turn();
  for (const { socket } of [router, agent]) socket.written();
  expect(await seconds(router, 10, () => router.socket.say(pingOf()))).toEqual(Array(10).fill("pong"));
  expect(await seconds(agent, 10, () => agent.socket.say(pongs))).toEqual(Array(10).fill("ping"));
  expect([router.socket.destroyed, agent.socket.destroyed]).toEqual([false, false]);
});

test("a router that also sends a PING each second, as in the previous release, gets an answer", async () => {
  const agent = openEnd("agent");
  await turn();
  agent.socket.written();
  const both = Buffer.concat([pingOf(), pongs]);
  expect(await seconds(agent, 3, () => agent.socket.say(both))).toEqual(Array(3).fill("pong ping"));
});

test("while a stream is open, the router's end also sends a PING each second", async () => {
  const router = openEnd("router");
  const asked = SimStream.open(router.connection, [1]);
  await turn();
  router.socket.written();
  const sayBoth = () => router.socket.say(pingOf());
  expect(await seconds(router, 3, sayBoth)).toEqual(Array(3).fill("pong ping"));
  asked.frames.cancel("unwanted");
  await turn();
  router.socket.written();
  expect(await seconds(router, 3, sayBoth)).toEqual(Array(3).fill("pong"));
});

test("an agent that sends no PING but answers them is not lost", async () => {
  const router = openEnd("router");
  let asked = 0;
  for (let second = 0; second < 20; second++) {
    await turn();
    const isAsked = rawFrames(router.socket.written()).some(({ type }) => type === frames.ping);
    if (isAsked) router.socket.say(pongs);
    asked += Number(isAsked);
    await router.clock.advanceAsync(1_000);
  }
  expect([router.socket.destroyed, asked]).toEqual([false, 10]);
});

test.each(roles.flatMap((role) => [0, 500, 999].map((ms) => [role, ms] as const)))(
  "a %s's end loses a peer, once, 3 to 4 s after the peer falls silent, %s ms after a check [C1]",
  async (role, ms) => {
    const { socket, told, clock } = openEnd(role);
    await clock.advanceAsync(2_000 + ms);
    socket.say(rawFrame(frames.pong, 0, Buffer.alloc(8)));
    await clock.advanceAsync(3_000 - 1);
    expect(socket.destroyed).toBe(false);
    await clock.advanceAsync(1_001);
    expect(told).toEqual(["the peer has fallen silent", undefined]);
    await clock.advanceAsync(60_000);
    expect([told.length, clock.pending]).toEqual([2, 0]);
  },
);

test.each(roles.flatMap((role) => [3_000, 5_000, 60_000].map((ms) => [role, ms] as const)))(
  "a %s whose event loop was blocked for %s ms counts the data that waited meanwhile [C1]",
  async (role, ms) => {
    const { socket, clock } = openEnd(role);
    socket.say(rawFrame(frames.pong, 0, Buffer.alloc(8)));
    await clock.advanceAsync(1_500);
    clock.stall(ms);
    clock.advance(0); // timers fire first, then waiting bytes are read
    expect(socket.destroyed).toBe(false);
    socket.say(rawFrame(frames.pong, 0, Buffer.alloc(8)));
    await clock.advanceAsync(2_900);
    expect(socket.destroyed).toBe(false);
  },
);

test("a connection that is closing still notices that its peer has fallen silent", async () => {
  const { socket, told, connection, clock } = openEnd();
  socket.say(rawFrame(frames.head, 1, "[]"));
  connection.goAway();
  await clock.advanceAsync(4_000);
  expect(told).toEqual(["the peer has fallen silent", undefined]);
});
