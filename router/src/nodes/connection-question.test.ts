import { FrameConnection } from "@weiche/shared/frames/frame-connection.ts";
import { rawFrame, rawFrames } from "@weiche/shared/testing/raw-frames.ts";
import { SimSocket } from "@weiche/shared/testing/sim-socket.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { question } from "./connection-question.ts";

const limits = { answerMsMax: 1_000, answerBytesMax: 3_000 };

function ask() {
  const socket = new SimSocket();
  const clock = new VirtualClock();
  const connection = new FrameConnection(socket.asSocket, { clock, closed() {} });
  return { socket, connection, clock, answer: question(connection, "/weiche/x", limits, clock) };
}

test("an answer in small pieces does not keep the socket's read buffers in memory", async () => {
  const { socket, answer } = ask();
  socket.say(rawFrame(1, 1, '[200,"text"]'));
  for (let n = 0; n < 300; n++) {
    const read = rawFrame(2, 1, "0123456789");
    socket.say(read);
    read.fill("x");
  }
  socket.say(rawFrame(3, 1, [0]));
  expect(await answer).toEqual({ status: 200, text: "0123456789".repeat(300) });
});

test.each([
  ["longer than allowed", [rawFrame(1, 1, "[200]"), rawFrame(2, 1, "x".repeat(3_001))], /more than 3000/, 0],
  ["without a record", [rawFrame(1, 1, "{}")], /no record/, 2],
  ["with an object for a status", [rawFrame(1, 1, '[{"valueOf":0,"toString":0}]')], /no record/, 2],
  ["with lists of lists for a status", [rawFrame(1, 1, `${"[".repeat(8_000)}${"]".repeat(8_000)}`)], /no record/, 2],
  ["that never comes", [], /within 1000 ms/, 0],
])("an answer %s is cancelled, and no timer is left", async (_what, said, why, code) => {
  const { socket, clock, connection, answer } = ask();
  const failed = answer.then(JSON.stringify, String);
  for (const bytes of said) socket.say(bytes);
  await clock.advanceAsync(1_000);
  expect(await failed).toMatch(why);
  await new Promise((resolve) => setImmediate(resolve));
  expect(rawFrames(socket.written()).filter(({ type }) => type === 4)).toEqual([
    { type: 4, stream: 1, payload: Buffer.from([code]) },
  ]);
  connection.destroy();
  await clock.advanceAsync(0);
  expect(clock.pending).toBe(0);
});
