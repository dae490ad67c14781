/**
 * Tests bodies that are long, many, slow or never read: the bytes that arrive, the streams that wait, and the memory
 * that they take.
 */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openFramePair } from "../testing/frame-pair.ts";
import { rawFrame, rawFrames } from "../testing/raw-frames.ts";
import { SimSocket } from "../testing/sim-socket.ts";
import { SimStream } from "../testing/sim-stream.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { FrameConnection } from "./frame-connection.ts";
import { ends, streamsMax, windowBytes } from "./frame.ts";
import { sliceBytesMax, unsentBytesMax } from "./frame-writer.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const record = '["/"]';

/**
 * The most memory that this many stalled streams may take: a window each, garbage from its growth, and the bytes in
 * transit.
 */
const memoryOf = (streams: number) => 3 * streams * windowBytes + (32 << 20);

/** Writes pieces as fast as the stream takes them. */
async function write(stream: SimStream, pieces: readonly (Buffer | string)[]): Promise<void> {
  for (const piece of pieces)
    if (!stream.frames.write(piece) && !stream.isOver)
      await new Promise<void>((resolve) => stream.once("drain", resolve).once("over", resolve));
}

const piece = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.nat(300).map((length) => Buffer.alloc(length, "x")),
  fc.constantFrom(1, sliceBytesMax, 65_536, windowBytes, 700_000).map((length) => randomBytes(length)),
  fc.constant("€".repeat(30_000)),
);
const bodies = fc.array(piece, { maxLength: 6 });
const plans = fc.record({ asked: bodies, answered: bodies, pauses: fc.array(fc.nat(5), { maxLength: 5 }) });

test("many concurrent bodies in both directions arrive unchanged, however they are read", async () => {
  const answers: (readonly (Buffer | string)[])[] = [];
  const received: Buffer[] = [];
  await using pair = await openFramePair((stream, index) => {
    const answered = answers[Number(index)]!;
    void stream.read().then(async (body) => {
      received[Number(index)] = body;
      stream.begin();
      await write(stream, answered);
      stream.finish();
    });
  });
  const ask = async ({ asked, answered, pauses }: typeof plans extends fc.Arbitrary<infer Of> ? Of : never) => {
    const index = answers.push(answered) - 1;
    const stream = SimStream.open(pair.router, index as never);
    const answer = stream.read();
    for (const turns of pauses) {
      stream.frames.pause();
      for (let n = 0; n < turns; n++) await turn();
      stream.frames.resume();
    }
    await write(stream, asked);
    stream.frames.end(ends.complete);
    const bytes = (all: typeof asked) => Buffer.concat(all.map((one) => Buffer.from(one as string)));
    expect((await answer).equals(bytes(answered))).toBe(true);
    expect(received[index]!.equals(bytes(asked))).toBe(true);
    expect(stream.ending).toBe(ends.complete);
  };
  await fc.assert(
    fc.asyncProperty(fc.array(plans, { minLength: 1, maxLength: 6 }), async (all) => {
      await Promise.all(all.map(ask));
      expect([pair.router.streams, pair.agent.streams]).toEqual([0, 0]);
    }),
    { numRuns: 30 },
  );
  expect(pair.closed).toEqual({});
});

test("a body of 20 MB delays another stream's word by at most the socket's bytes and one slice per stream", async () => {
  const socket = new SimSocket();
  socket.isStuck = true;
  const router = new FrameConnection(socket.asSocket, { clock: new VirtualClock(), closed() {} });
  const large = Array.from({ length: 3 }, () => SimStream.open(router, [1]));
  for (const { frames } of large) {
    frames.write(Buffer.alloc(20 << 20));
    // Acts like a peer that reads everything.
    frames.credit = Infinity;
  }
  await turn();
  const before = socket.written().length;
  expect(before).toBeLessThanOrEqual(unsentBytesMax + 4 * sliceBytesMax);
  const small = SimStream.open(router, [2]);
  small.frames.write("word");
  await turn();
  expect(socket.written().length, "only the head, because the socket is full").toBeLessThan(100);
  const next: number[] = [];
  while (!next.includes(small.frames.id) && socket.sendOne())
    next.push(...rawFrames(socket.written()).map(({ stream }) => stream));
  expect(new Set(next.slice(0, next.indexOf(small.frames.id))).size, "one slice of each").toBe(large.length);
  expect(next.indexOf(small.frames.id)).toBe(large.length);
});

test("all frames of one turn leave in one write, such as head, body and end of short answers", async () => {
  let writes = 0;
  const socket = new SimSocket();
  const write = socket.write.bind(socket);
  socket.write = (...given) => (writes++, write(...given));
  const take = (frames: SimStream["frames"]) => {
    const stream = SimStream.taken(frames);
    stream.answer("short");
    return stream;
  };
  new FrameConnection(socket.asSocket, { clock: new VirtualClock(), take, closed() {} });
  await turn();
  writes = 0;
  socket.written();
  socket.say(Buffer.concat(Array.from({ length: 50 }, (_, n) => rawFrame(1, n + 1, record))));
  await turn();
  expect(writes).toBe(1);
  expect(rawFrames(socket.written()).map(({ type }) => type)).toEqual(
    Array.from({ length: 50 }, () => [1, 2, 3]).flat(),
  );
});

test("200 unread answers hold one window at each end and delay no other answer [D3]", async () => {
  const written: number[] = [];
  const chunk = randomBytes(8_000);
  await using pair = await openFramePair((stream, text) => {
    if (text === "[2]") return stream.answer("read");
    const index = written.push(0) - 1;
    stream.begin();
    const more = () => {
      do written[index]! += chunk.length;
      while (stream.frames.write(chunk));
    };
    stream.on("drain", more);
    more();
  });
  const before = process.memoryUsage().arrayBuffers;
  const unread = Array.from({ length: 200 }, () => {
    const stream = SimStream.open(pair.router, [1]);
    stream.frames.pause();
    return stream;
  });
  await expect.poll(() => Math.min(...written), { timeout: 10_000 }).toBeGreaterThan(windowBytes - chunk.length);
  for (let n = 0; n < 10; n++) expect(String(await SimStream.open(pair.router, [2]).read())).toBe("read");
  expect(Math.max(...written)).toBeLessThanOrEqual(windowBytes + chunk.length);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(memoryOf(200));
  for (const stream of unread) stream.cancel();
  await expect.poll(() => pair.agent.streams).toBe(0);
});

test("unread requests hold at most one window at the agent, and the router does not copy their bodies", async () => {
  const waiting: SimStream[] = [];
  await using pair = await openFramePair((stream, text) => {
    if (text === "[2]") stream.answer("small");
    else waiting.push(stream);
  });
  const body = randomBytes(20 << 20);
  const before = process.memoryUsage().arrayBuffers;
  const large = Array.from({ length: 30 }, () => {
    const stream = SimStream.open(pair.router, [1]);
    stream.frames.write(body);
    stream.frames.end(ends.complete);
    return stream.read();
  });
  await expect.poll(() => waiting.length).toBe(30);
  expect(String(await SimStream.open(pair.router, [2]).read())).toBe("small");
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(memoryOf(30));
  for (const stream of waiting.slice(0, 2)) {
    expect((await stream.read()).equals(body)).toBe(true);
    stream.answer("large");
  }
  for (const stream of waiting.slice(2)) stream.answer("refused"); // the router does not send the rest of their bodies
  const answers = await Promise.all(large);
  expect(answers.map(String)).toEqual(waiting.map((_, index) => (index < 2 ? "large" : "refused")));
});

test("small pieces of an unread body are merged into few, and handed over only while the stream is read", () => {
  const socket = new SimSocket();
  const router = new FrameConnection(socket.asSocket, { clock: new VirtualClock(), closed() {} });
  const stream = SimStream.open(router, [1]);
  stream.frames.pause();
  const word = rawFrame(2, 1, "0123456789");
  const words = Math.floor(windowBytes / 10);
  socket.say(Buffer.concat([rawFrame(1, 1, "[200]"), ...Array.from({ length: words }, () => word)]));
  const pieces: string[] = [];
  stream.on("data", (piece) => {
    pieces.push(String(piece));
    stream.frames.pause();
  });
  for (let resumed = 1; pieces.join("").length < words * 10; resumed++) {
    stream.frames.resume();
    expect(pieces.length).toBe(resumed);
  }
  expect(pieces.length).toBeLessThan(100);
  expect(pieces.join("")).toBe("0123456789".repeat(words));
});

test("five connections carry 10,000 streams, at most 2,000 each, and all are completed", async () => {
  const streams: SimStream[] = [];
  const take = (stream: SimStream) => {
    streams.push(stream);
    stream.begin();
    stream.frames.write("begun ");
  };
  const pairs = await Promise.all(Array.from({ length: 5 }, () => openFramePair(take)));
  await using opened = new AsyncDisposableStack();
  for (const pair of pairs) opened.use(pair);
  const asked = pairs.flatMap(({ router }) =>
    Array.from({ length: streamsMax }, () => SimStream.open(router, [1]).read()),
  );
  for (const { router } of pairs) expect(router.open(record, new SimStream())).toBeUndefined();
  await expect.poll(() => streams.length, { timeout: 10_000 }).toBe(10_000);
  for (const stream of streams) stream.finish("done");
  expect(new Set((await Promise.all(asked)).map(String))).toEqual(new Set(["begun done"]));
  expect(pairs.map(({ router, agent }) => [router.streams, agent.streams])).toEqual(pairs.map(() => [0, 0]));
});

test("a received END or a DONE notifies the router that the agent is done, before the answer is read", async () => {
  const taken: SimStream[] = [];
  await using pair = await openFramePair((stream) => void taken.push(stream));
  const asked = [SimStream.open(pair.router, [1]), SimStream.open(pair.router, [1])];
  for (const { frames } of asked) frames.pause();
  const areDone = () => asked.map(({ isDone }) => isDone);
  await expect.poll(() => taken.length).toBe(2);
  taken[1]!.begin();
  taken[1]!.finish(Buffer.alloc(2 * windowBytes));
  taken[0]!.answer("short");
  await expect.poll(areDone).toEqual([true, false]);
  taken[1]!.frames.done();
  await expect.poll(areDone).toEqual([true, true]);
  expect(
    asked.map(({ ending }) => ending),
    "neither sink has received its end",
  ).toEqual([undefined, undefined]);
  expect((await asked[1]!.read()).length).toBe(2 * windowBytes);
});
