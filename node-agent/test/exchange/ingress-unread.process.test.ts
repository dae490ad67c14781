/** Clients that still read when their engine is done: the place is free, and unread bytes are limited. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import { asId, type AccountId } from "@weiche/shared/ids.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { UnreadAnswers } from "../../src/exchange/unread-answers.ts";
import { chatRules, eventsOf, model, Rig, until, type RigOptions, type Sent } from "./ingress-rig.ts";
import { beginEvents, delta, done, endEvents, respond, usageEvent, writeChunk } from "./scripted-engine.ts";
import { chunk, opening, promptTokens } from "./stalled-stream.ts";

const words = 60;
/** More than a window of 256 KiB, in this many words. */
const long = Array.from({ length: words }, (_, n) => chunk(n + 1, { content: `w${n} `.padEnd(20_000, "x") })).join("");
const longAnswer = opening + long + chunk(words, {}, "stop") + usageEvent(promptTokens, words) + done;
const texts = 64;
const dimensions = 2_048;
const embeddingRules = {
  ...chatRules,
  category: "embeddings" as const,
  embeddings: { dimensions: { min: 64, max: dimensions, default: dimensions }, inputTokens: 64 },
};

function answerAnything(socket: Socket, { path, body }: { path: string; body: Record<string, unknown> }): void {
  if (path !== nodePaths.embeddings) {
    beginEvents(socket);
    for (let at = 0; at < longAnswer.length; at += 60_000) writeChunk(socket, longAnswer.slice(at, at + 60_000));
    return endEvents(socket);
  }
  const embedding = Array.from({ length: dimensions }, (_, n) => Math.sin(n));
  const data = (body["input"] as string[]).map((_, index) => ({ index, embedding }));
  respond(socket, 200, JSON.stringify({ data, usage: { prompt_tokens: data.length } }));
}

/** Sends a request, and reads nothing of the answer once it has begun. */
async function askUnread(rig: Rig, ask: (rig: Rig) => Sent): Promise<Sent> {
  const sent = ask(rig);
  await once(sent.stream, "head");
  sent.stream.frames.pause();
  return sent;
}

const streamed = (rig: Rig) => rig.chat({ stream: true });
const kinds: readonly [what: string, ask: (rig: Rig) => Sent, options?: RigOptions][] = [
  ["a streamed chat", streamed],
  ["a chat", (rig) => rig.chat()],
  ["a streamed completion", (rig) => rig.send(nodePaths.completions, { model, prompt: "hi", stream: true })],
  [
    "embeddings",
    (rig) => rig.send(nodePaths.embeddings, { model, input: Array<string>(texts).fill("text") }),
    { rules: embeddingRules },
  ],
];

test.each(kinds)(
  "the place of %s is free when the engine is done, and the rest is read later [B8]",
  async (what, ask, o) => {
    await using rig = await Rig.open(answerAnything, o);
    if (what === "a streamed completion") rig.engine.script = (socket) => completion(socket);
    const { answer, stream } = await askUnread(rig, ask);
    await until(() => rig.slot.running === 0, "the place to be free");
    expect(rig.ingress.running).toBe(1);
    await until(() => rig.ingress.unreadBytes > 500_000, "the rest to be unread");
    await until(() => stream.isDone, "the router to learn that the place is free");
    stream.frames.resume();
    const { text, ending } = await answer;
    expect(ending).toBe("complete");
    const isWhole = what.includes("stream") ? eventsOf(text).at(-1) === "[DONE]" : typeof JSON.parse(text) === "object";
    expect(isWhole).toBe(true);
    expect(await rig.records()).toMatchObject([{ outcome: "finished", source: "engine" }]);
    expect(rig.ingress.unreadBytes).toBe(0);
  },
);

function completion(socket: Socket): void {
  beginEvents(socket);
  for (let n = 0; n < words; n++)
    writeChunk(socket, `data: {"choices":[{"index":0,"text":"${"x".repeat(20_000)}","finish_reason":null}]}\n\n`);
  writeChunk(socket, 'data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]}\n\n');
  writeChunk(socket, usageEvent(promptTokens, words) + done);
  endEvents(socket);
}

test("a router that does not read DONE frames gets none", async () => {
  await using rig = await Rig.open(answerAnything);
  const { stream, answer } = await askUnread(rig, () => rig.chat({ stream: true }, { readsDone: 0 }));
  await until(() => rig.slot.running === 0, "the place to be free");
  await rig.chat({}, { model: "other" }).answer; // On the same connection, so after it.
  expect(stream.isDone).toBe(false);
  stream.frames.resume();
  expect((await answer).ending).toBe("complete");
});

test("a client that leaves after its engine was done pays for all generated tokens [D3]", async () => {
  await using rig = await Rig.open(answerAnything);
  const { stream } = await askUnread(rig, streamed);
  await until(() => rig.slot.running === 0, "the place to be free");
  expect(rig.outbox.records).toEqual([]);
  stream.cancel();
  expect(await rig.records()).toMatchObject([
    { outcome: "client-ended", source: "engine", promptTokens, completionTokens: words },
  ]);
  expect(rig.ingress.unreadBytes).toBe(0);
});

test("an engine that is lost after it was done does not change an answer that is still read", async () => {
  await using rig = await Rig.open(answerAnything);
  const { stream, answer } = await askUnread(rig, streamed);
  await until(() => rig.slot.running === 0, "the place to be free");
  rig.slot.loseEngine();
  stream.frames.resume();
  expect((await answer).ending).toBe("complete");
});

test.each([true, false])(
  "a client that still reads at the limit of its request pays for the generated tokens (streamed: %s) [D3]",
  async (isStreamed) => {
    const clock = new VirtualClock();
    await using rig = await Rig.open(answerAnything, { clock });
    const { stream, answer } = await askUnread(rig, (asked) => asked.chat({ stream: isStreamed }));
    await until(() => rig.slot.running === 0, "the place to be free");
    clock.advance(600_000);
    // The error event waits behind the unread bytes for a minute.
    if (isStreamed) await until(() => rig.outbox.records.length === 1, "the record");
    clock.advance(60_000);
    stream.frames.resume();
    expect((await answer).code).toBe(ends.unread);
    expect(await rig.records()).toMatchObject([
      { outcome: isStreamed ? "limit-ended" : "finished", completionTokens: words },
    ]);
  },
);

test("a stop does not wait for a client that does not read the end of its answer", async () => {
  const clock = new VirtualClock();
  await using rig = await Rig.open(answerAnything, { clock });
  await askUnread(rig, streamed);
  await until(() => rig.slot.running === 0, "the place to be free");
  let isStopped = false;
  const stopped = rig.ingress.stop(10_000).then(() => (isStopped = true));
  clock.advance(10_000);
  await until(() => rig.outbox.records.length === 1, "the record");
  clock.advance(3_999);
  await rig.chat().answer;
  expect(isStopped).toBe(false);
  clock.advance(1);
  await stopped;
  expect(rig.outbox.records).toMatchObject([{ outcome: "broken", completionTokens: 0 }]);
});

test("an answer whose client left while its record was written is not remembered, because its router has settled it", async () => {
  await using rig = await Rig.open(delta({ content: "hi" }, "stop") + usageEvent(7, 1) + done);
  const { asked, synced } = rig.outbox.hold();
  const { stream } = rig.chat({ stream: true });
  await asked.promise;
  stream.cancel();
  await rig.chat({}, { model: "other" }).answer; // The agent has seen it.
  synced.resolve();
  expect(await rig.records()).toMatchObject([{ outcome: "finished" }]);
  expect(rig.unsettled).toEqual([]);
});

test("a slow client that leaves more unread than the limit delays its engine, and its answer ends as unread [D3]", async () => {
  const clock = new VirtualClock();
  let written = 0;
  await using rig = await Rig.open(
    (socket) => {
      beginEvents(socket);
      const more = () => {
        while (!socket.destroyed) {
          const text = chunk(++written, { content: "x".repeat(100_000) });
          if (!socket.write(`${text.length.toString(16)}\r\n${text}\r\n`)) return void socket.once("drain", more);
        }
      };
      more();
    },
    { clock },
  );
  const { stream, answer } = await askUnread(rig, streamed);
  await until(() => rig.ingress.unreadBytes > 16 << 20, "the bound to be reached", 30_000);
  expect(rig.slot.running).toBe(1);
  // 128 KiB every 10 s is 13 KiB a second, less than the required speed of a client that delays its engine.
  let seconds = 0;
  for (; rig.slot.running === 1 && seconds < 600; seconds += 10) {
    await takeWindow(stream);
    await until(() => rig.ingress.unreadBytes > 16 << 20, "the engine to be delayed again");
    clock.advance(10_000);
    await rig.chat({}, { model: "other" }).answer; // The agent has seen it.
  }
  expect(seconds).toBeGreaterThan(60);
  expect(seconds).toBeLessThan(600);
  stream.frames.resume();
  expect((await answer).code).toBe(ends.unread);
  expect(await rig.records()).toMatchObject([{ outcome: "client-ended", promptTokens }]);
  expect(rig.ingress.unreadBytes).toBe(0);
});

/** Reads half a window, for which the agent gets credit. */
async function takeWindow(stream: Sent["stream"]): Promise<void> {
  if (stream.isOver) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  const onData = (bytes: Buffer) => {
    taken += bytes.length;
    if (taken < 128 << 10) return;
    stream.frames.pause();
    resolve();
  };
  stream.on("data", onData).once("over", resolve);
  stream.frames.resume();
  await promise;
  stream.off("data", onData).off("over", resolve);
}

test("an answer in one piece that exceeds the limit keeps its place until the rest fits, and then releases it [B8]", async () => {
  const part = delta({ content: "x".repeat(6_000_000) });
  await using rig = await Rig.open(part.repeat(3) + delta({}, "stop") + usageEvent(7, 3) + done);
  const { stream, answer } = await askUnread(rig, (asked) => asked.chat());
  expect(rig.slot.running).toBe(1);
  expect(rig.ingress.unreadBytes).toBeGreaterThan(17_000_000);
  while (rig.ingress.unreadBytes > 16 << 20) {
    expect(rig.slot.running).toBe(1);
    await takeWindow(stream);
  }
  await until(() => rig.slot.running === 0, "the place to be free");
  stream.frames.resume();
  expect((await answer).ending).toBe("complete");
  expect(await rig.records()).toMatchObject([{ outcome: "finished" }]);
});

test.each(kinds)(
  "the place of %s is released even if its account has reached its limit of unread bytes [B8]",
  async (what, ask, o) => {
    const unread = new UnreadAnswers();
    unread.open(asId<AccountId>("account-1")).is(100 << 20);
    await using rig = await Rig.open(answerAnything, { ...o, unread });
    if (what === "a streamed completion") rig.engine.script = (socket) => completion(socket);
    expect((await ask(rig).answer).ending).toBe("complete");
    expect(await rig.records()).toMatchObject([{ outcome: "finished" }]);
    expect(rig.ingress.unreadBytes).toBe(100 << 20);
  },
);
