/** Engines that send more than requested: too many calls, too large events, too much after the end, wrong counts. */
import { once } from "node:events";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { chatRules, Rig, until } from "./ingress-rig.ts";
import {
  beginEvents,
  delta,
  done,
  event,
  httpHead,
  respond,
  saying,
  usageEvent,
  usageOf,
  writeChunk,
  type EngineScript,
} from "./scripted-engine.ts";

const opening = delta({ role: "assistant", content: "" }) + delta({ content: "Hello" });
const good = opening + delta({}, "stop") + usageEvent(3, 2) + done;
/** For the rig's chat: a fifth of the bytes of `role`, `user`, `content` and `hi`. */
const estimatedTokens = 3;
const plain = httpHead(200, { "content-type": "text/event-stream" });

const calls = Array.from({ length: 1_100 }, (_, index) =>
  delta({ tool_calls: [{ index, id: `c${index}`, function: { name: "f", arguments: "{}" } }] }),
);

test.each([true, false])(
  "an answer ends with its 1,024th call, complete and billed (stream: %s) [A9]",
  async (stream) => {
    await using rig = await Rig.open(saying(delta({ role: "assistant" }) + calls.join("")));
    const { status, text, ending } = await rig.chat({ stream }).answer;
    expect({ status, ending }).toEqual({ status: 200, ending: "complete" });
    expect(text.match(/"name":"f"/g)).toHaveLength(1_024);
    expect(text).toContain('"finish_reason":"length"');
    expect(await rig.records()).toMatchObject([{ outcome: "finished", completionTokens: 1_024 }]);
    await until(() => rig.engine.asked[0]!.destroyed, "the engine to be stopped");
  },
);

test("too many calls in one event are billed too", async () => {
  const call = (index: number, name?: string) => ({ index, id: `c${index}`, function: { name, arguments: "{}" } });
  const many = delta({ tool_calls: Array.from({ length: 1_100 }, (_, index) => call(index, "f")) });
  await using full = await Rig.open(saying(many));
  expect((await full.chat({ stream: true }).answer).text.match(/"name":"f"/g)).toHaveLength(1_024);
  expect(await full.records()).toMatchObject([{ outcome: "finished" }]);
  expect((await full.records())[0]!.completionTokens).toBeGreaterThan(0);
});

test("an event of 64 MiB, or one without an end, is not waited for [C6]", { timeout: 30_000 }, async () => {
  for (const start of ['data: {"choices":[{"index":0,"delta":{"content":"', ""]) {
    await using rig = await Rig.open((socket) => {
      socket.write(plain);
      socket.write(start);
      let left = 64;
      const more = () => {
        while (left-- > 0 && !socket.destroyed)
          if (!socket.write("x".repeat(1 << 20))) return void socket.once("drain", more);
        if (!socket.destroyed) socket.end();
      };
      more();
    });
    expect((await rig.chat({ stream: true }).answer).status).toBe(500);
    await rig.quiet();
    expect(rig.faults).toEqual([expect.stringMatching(/too large/)]);
  }
});

test("an error page is read up to a limit", async () => {
  await using rig = await Rig.open((socket) => {
    socket.write(httpHead(500, { "content-type": "text/plain" }));
    const more = () => {
      while (!socket.destroyed) if (!socket.write("x".repeat(64 << 10))) return void socket.once("drain", more);
    };
    more();
  });
  expect((await rig.chat().answer).status).toBe(500);
  await rig.quiet();
  expect(rig.faults).toEqual([expect.stringMatching(/too large/)]);
});

test("bytes after the terminator are not read, and end the connection", async () => {
  const clock = new VirtualClock();
  const script: EngineScript = (socket) => {
    saying(`${good}data: {"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":900}}\n\n`)(socket);
    setTimeout(() => writeChunk(socket, "x"), 20);
  };
  await using rig = await Rig.open(script, { clock });
  const { status, ending } = await rig.chat({ stream: true }).answer;
  expect({ status, ending }).toEqual({ status: 200, ending: "complete" });
  const counts = { outcome: "finished", promptTokens: 3, completionTokens: 2, source: "engine" };
  expect(rig.outbox.records).toMatchObject([counts]);
  await until(() => rig.engine.sockets.size === 0, "the connection to be given up");
});

test("an answer that does not end after its terminator loses its connection within a second", async () => {
  const clock = new VirtualClock();
  await using rig = await Rig.open(saying(good), { clock });
  expect((await rig.chat().answer).status).toBe(200);
  clock.advance(999);
  expect(rig.engine.sockets.size).toBe(1);
  clock.advance(1);
  await until(() => rig.engine.sockets.size === 0, "the connection to be given up");
});

test("an endless answer is cut before it fills the memory, and is billed [A9]", { timeout: 60_000 }, async () => {
  const piece = delta({ content: "x".repeat(1 << 20) });
  await using rig = await Rig.open((socket) => {
    beginEvents(socket);
    const more = () => {
      while (!socket.destroyed) {
        if (!socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`)) return void socket.once("drain", more);
      }
    };
    more();
  });
  const { stream } = rig.chat();
  const [[status]] = (await once(stream, "head")) as [readonly unknown[]];
  expect(status).toBe(200);
  stream.cancel();
  expect(await rig.records()).toMatchObject([{ outcome: "finished", source: "counted" }]);
});

test("an engine that reports more tokens than requested is billed by the tokens that it sent [A2]", async () => {
  const much = event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1_000 } });
  await using rig = await Rig.open(opening + delta({}, "stop") + much + done);
  const told = { completion_tokens: 1, total_tokens: 4 };
  for (const limit of [{ max_tokens: 5 }, { max_completion_tokens: 5 }])
    expect(JSON.parse((await rig.chat(limit).answer).text)).toMatchObject({ usage: told });
  expect(JSON.parse((await rig.chat().answer).text)).toMatchObject({ usage: { completion_tokens: 1_000 } });
  expect(rig.outbox.records.map(({ source, completionTokens }) => [source, completionTokens])).toEqual([
    ...[
      ["counted", 1],
      ["counted", 1],
      ["engine", 1_000],
    ],
  ]);
});

const wide = { ...chatRules, contextTokens: 32_768 };

test("a prompt count that is impossible for the prompt's bytes does not end the request, and the prompt is estimated [A2]", async () => {
  const lie = delta({ content: "So" }, "stop", { usage: usageOf(40_000, 1) });
  await using rig = await Rig.open(lie + done, { rules: wide });
  const { status, text } = await rig.chat().answer;
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ usage: { prompt_tokens: estimatedTokens, completion_tokens: 1 } });
  const estimated = { promptTokens: estimatedTokens, estimatedTokens };
  expect(await rig.records()).toMatchObject([{ outcome: "finished", ...estimated, source: "counted" }]);
});

test("a refusal with a prompt count that is impossible for the prompt's bytes is a fault of the engine", async () => {
  const error = { code: 400, message: "x", type: "exceed_context_size_error", n_prompt_tokens: 40_000, n_ctx: 32_768 };
  await using rig = await Rig.open((socket) => respond(socket, 400, JSON.stringify({ error })), { rules: wide });
  expect(await rig.chat().answer).toMatchObject({ status: 500 });
  expect(rig.faults).toEqual(["malformed: the engine's count of the prompt is impossible for its bytes"]);
  const long = [{ role: "user", content: "x".repeat(8_000) }];
  expect(await rig.chat({ messages: long }).answer).toMatchObject({ status: 400 });
});
