/** Tests when frames leave and which memory they use. */
import { expect, test } from "vitest";
import { rawFrame, rawFrames } from "../testing/raw-frames.ts";
import { SimSocket } from "../testing/sim-socket.ts";
import { SimStream } from "../testing/sim-stream.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { busyStreams, FrameConnection } from "./frame-connection.ts";
import { busyPauseMs } from "./frame-writer.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Opens an agent's end that answers this many streams. */
async function openAnswers(count: number) {
  const clock = new VirtualClock();
  const socket = new SimSocket();
  const streams: SimStream[] = [];
  const take = (frames: SimStream["frames"]) => {
    const stream = SimStream.taken(frames);
    streams.push(stream);
    return stream;
  };
  new FrameConnection(socket.asSocket, { clock, take, closed() {} });
  for (let id = 1; id <= count; id++) socket.say(rawFrame(1, id, '["/"]'));
  for (const { frames } of streams) frames.head("[200]");
  await turn();
  socket.written();
  const came = () => rawFrames(socket.written()).map(({ type, stream, payload }) => [type, stream, String(payload)]);
  return { clock, socket, streams, came };
}

test("words of a busy connection leave together a moment after the last write, or at once after a pause", async () => {
  const { clock, streams, came } = await openAnswers(busyStreams);
  const words = streams.slice(0, 3).map(
    ({ frames }, n) =>
      () =>
        frames.write(`word ${n}`),
  );
  for (const say of words) {
    say();
    await turn();
  }
  expect(came()).toEqual([]);
  await clock.advanceAsync(busyPauseMs);
  expect(came()).toEqual([1, 2, 3].map((id) => [2, id, `word ${id - 1}`]));
  await clock.advanceAsync(busyPauseMs);
  words[0]!();
  await turn();
  expect(came()).toEqual([[2, 1, "word 0"]]);
});

test("frames other than DATA leave at once, together with the DATA that waits", async () => {
  const { clock, streams, came } = await openAnswers(busyStreams);
  streams[0]!.frames.write("word");
  streams[1]!.frames.end(0);
  await turn();
  expect(came()).toEqual([
    [2, 1, "word"],
    [3, 2, "\0"],
  ]);
  await clock.advanceAsync(busyPauseMs);
  expect(came()).toEqual([]);
});

test("on a connection with few streams, each word leaves at the end of its turn", async () => {
  const { streams, came } = await openAnswers(busyStreams - 1);
  for (const word of ["one", "two"]) {
    streams[0]!.frames.write(word);
    await turn();
    expect(came()).toEqual([[2, 1, word]]);
  }
});

test("connections reuse the same few buffers in sequence", async () => {
  const connections = await Promise.all([1, 2, 3].map(() => openAnswers(1)));
  const memory = new Set<ArrayBufferLike>();
  for (const { socket } of connections) {
    const write = socket.write.bind(socket);
    socket.write = (bytes, sent) => (memory.add(bytes.buffer), write(bytes, sent));
  }
  for (let n = 0; n < 200; n++) {
    connections[n % connections.length]!.streams[0]!.frames.write("word");
    await turn();
  }
  expect(memory.size).toBeLessThanOrEqual(connections.length);
});
