/** Tests how much memory a connection takes for a peer that reads slowly or not at all. */
import { expect, test } from "vitest";
import { rawFrame, rawFrames, u32 } from "../testing/raw-frames.ts";
import { SimSocket } from "../testing/sim-socket.ts";
import { SimStream } from "../testing/sim-stream.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { FrameConnection } from "./frame-connection.ts";
import { ends, streamsMax, windowBytes } from "./frame.ts";
import { unreadBytesMax } from "./frame-writer.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const record = '["/"]';

test("streams above the limit are refused, and a router that does not read the refusals is disconnected", async () => {
  const socket = new SimSocket();
  let broken: unknown;
  let taken = 0;
  new FrameConnection(socket.asSocket, {
    clock: new VirtualClock(),
    take: (frames) => (taken++, SimStream.taken(frames)),
    closed: (_reason, rule) => (broken = rule),
  });
  await turn();
  socket.written();
  const heads = (from: number, count: number) =>
    Buffer.concat(Array.from({ length: count }, (_, n) => rawFrame(1, from + n, record)));
  socket.say(heads(1, streamsMax + 3));
  await turn();
  expect(taken).toBe(streamsMax);
  const refusals = [1, 2, 3].map((n) => ({ type: 4, stream: streamsMax + n, payload: Buffer.from([1]) }));
  expect(rawFrames(socket.written())).toEqual(refusals);
  socket.isStuck = true;
  socket.say(heads(3_000, 20_000));
  expect(broken).toBeUndefined();
  socket.say(heads(23_000, 20_000));
  expect([broken, taken]).toEqual(["stream", streamsMax]);
});

test("only the last of several PINGs that arrive while the socket is full is answered", async () => {
  const socket = new SimSocket();
  const take = (frames: SimStream["frames"]) => {
    const stream = SimStream.taken(frames);
    stream.answer(Buffer.alloc(windowBytes / 2)); // two such answers fill the socket exactly
    return stream;
  };
  new FrameConnection(socket.asSocket, { clock: new VirtualClock(), take, closed() {} });
  socket.isStuck = true;
  for (let stream = 1; stream <= 2; stream++) socket.say(rawFrame(1, stream, record));
  await turn();
  socket.written();
  for (let n = 0; n < 1_000; n++) {
    socket.say(rawFrame(6, 0, Buffer.concat([u32(n), u32(0)])));
    if (n % 100 === 0) await turn();
  }
  expect(socket.written().length).toBe(0);
  socket.sendOne();
  const answered = rawFrames(socket.written()).filter(({ type }) => type === 7);
  expect(answered).toEqual([{ type: 7, stream: 0, payload: Buffer.concat([u32(999), u32(0)]) }]);
});

test("waiting words, each written separately, take little more memory than their bytes", async () => {
  const socket = new SimSocket();
  const router = new FrameConnection(socket.asSocket, { clock: new VirtualClock(), closed() {} });
  socket.isStuck = true;
  const stream = SimStream.open(router, [1]);
  for (let n = 0; n < 500; n++) {
    stream.frames.write("a word");
    await turn();
  }
  expect(socket.heldBytes).toBeLessThan(1 << 20);
  while (socket.sendOne());
  const words = rawFrames(socket.written()).filter(({ type }) => type === 2);
  expect(words.map(({ payload }) => String(payload))).toEqual(Array(500).fill("a word"));
});

test("a peer that opens and cancels streams and never reads is disconnected before it fills the memory", async () => {
  const socket = new SimSocket();
  const closed: unknown[] = [];
  const take = (frames: SimStream["frames"]) => {
    frames.head(`["${"x".repeat(1_000)}"]`);
    return SimStream.taken(frames);
  };
  new FrameConnection(socket.asSocket, { clock: new VirtualClock(), take, closed: (...why) => closed.push(...why) });
  socket.isStuck = true;
  let bytes = 0;
  for (let id = 1; !socket.destroyed && id < 20_000; id += 50) {
    const streams = Array.from({ length: 50 }, (_, n) => [rawFrame(1, id + n, record), rawFrame(4, id + n, [0])]);
    socket.say(Buffer.concat(streams.flat()));
    await turn();
    bytes = Math.max(bytes, socket.heldBytes);
  }
  expect(closed).toEqual(["the peer does not read", undefined]);
  expect(bytes).toBeLessThan(2 * unreadBytesMax);
});

test("nothing more is sent of a cancelled stream, whatever waits", async () => {
  const socket = new SimSocket();
  const router = new FrameConnection(socket.asSocket, { clock: new VirtualClock(), closed() {} });
  await turn();
  socket.written();
  const stream = SimStream.open(router, [1]);
  stream.frames.write("sent ");
  stream.frames.write(Buffer.alloc(1 << 20));
  stream.frames.end(ends.complete);
  stream.cancel();
  await turn();
  expect(rawFrames(socket.written()).map(({ type }) => type)).toEqual([1, 2, 4]);
  expect(router.streams).toBe(0);
});
