/** Clients that leave, and clients that read slowly or not at all: their bills, and the effect on their engine. */
import { once } from "node:events";
import type { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { chatRules, choicesOf, eventsOf, Rig, until } from "./ingress-rig.ts";
import { delta, done, endEvents, respondEvents, saying, usageEvent, writeChunk } from "./scripted-engine.ts";
import type { EngineScript } from "./scripted-engine.ts";
import { chunk, closing, opening, openStalled, promptTokens, received, whole, word } from "./stalled-stream.ts";

test("a client that leaves during its answer stops the engine and pays for the generated tokens [B5 S20.5]", async () => {
  for (let words = 1; words <= 12; words++) {
    await using rig = await openStalled(words);
    const { stream, answer } = rig.chat({ stream: true });
    await received(stream, words + 1);
    stream.cancel();
    await until(() => rig.engine.asked[0]!.destroyed, "the engine to see it", 1_000);
    await answer;
    expect(await rig.records()).toMatchObject([
      { outcome: "client-ended", source: "counted", promptTokens, completionTokens: words },
    ]);
  }
});

test("if an engine reports usage only at its end, a client that leaves pays for an estimated prompt, and one that stays for the count [A9 S20.5]", async () => {
  const messages = [{ role: "user", content: "x".repeat(1_000) }];
  await using rig = await Rig.open(saying(delta({ role: "assistant", content: "" })));
  const before = rig.chat({ stream: true, messages });
  await until(() => rig.engine.saw.length === 1, "the engine to be asked");
  before.stream.cancel();
  expect(await rig.records()).toMatchObject([{ outcome: "client-ended", promptTokens: 0, completionTokens: 0 }]);

  rig.engine.script = saying(delta({ content: "So" }));
  const early = rig.chat({ stream: true, messages });
  await received(early.stream, 2);
  early.stream.cancel();
  await rig.quiet();
  expect(rig.outbox.records[1]).toMatchObject({
    ...{ outcome: "client-ended", source: "counted", completionTokens: 1 },
    ...{ promptTokens: 203, estimatedTokens: 203 },
  });

  rig.engine.script = (socket) => respondEvents(socket, delta({ content: "So" }, "stop") + usageEvent(300, 1) + done);
  for (let n = 0; n < 30; n++) await rig.chat({ messages }, { account: `account-${n % 5}` }).answer;
  expect(rig.outbox.records[31]).toMatchObject({ source: "engine", promptTokens: 300 });
  expect(rig.outbox.records[31]).not.toHaveProperty("estimatedTokens");

  rig.engine.script = saying(delta({ content: "So" }));
  const late = rig.chat({ stream: true, messages });
  await received(late.stream, 2);
  late.stream.cancel();
  await rig.quiet();
  expect(rig.outbox.records[32]).toMatchObject({ promptTokens: 300, estimatedTokens: 300 });
});

test("a client that leaves before the first token also stops the engine, and pays nothing [B5]", async () => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open(() => {});
    const sent = rig.chat({ stream });
    await until(() => rig.engine.saw.length === 1, "the engine to be asked");
    sent.stream.cancel();
    await until(() => rig.engine.asked[0]!.destroyed, "the engine to see it", 1_000);
    expect(await rig.records()).toMatchObject([{ outcome: "client-ended", promptTokens: 0, completionTokens: 0 }]);
  }
});

test("a client that leaves while its answer is collected pays for the generated tokens", async () => {
  await using rig = await openStalled(5);
  const { stream } = rig.chat();
  await until(() => rig.engine.saw.length === 1, "the engine to be asked");
  // The words have been read once another request was answered.
  rig.engine.script = (socket) => respondEvents(socket, opening + closing(1));
  expect(await rig.chat().answer).toMatchObject({ status: 200 });
  rig.outbox.records.length = 0;
  stream.cancel();
  expect(await rig.records()).toMatchObject([{ outcome: "client-ended", promptTokens, completionTokens: 5 }]);
});

test("a client that leaves while it waits is removed from the queue [B5]", async () => {
  await using rig = await openStalled(1);
  rig.slot.gate = new Promise(() => {});
  const { stream } = rig.chat();
  await until(() => rig.slot.requests.length === 1, "the request to wait");
  stream.cancel();
  await rig.quiet();
  expect(rig.engine.saw).toEqual([]);
  expect(rig.outbox.records).toMatchObject([{ outcome: "client-ended", completionTokens: 0 }]);
});

test("a lost router costs nothing: a record of zero after the first byte, none before", async () => {
  for (const stream of [true, false]) {
    await using rig = await openStalled(3);
    const sent = rig.chat({ stream });
    if (stream) await received(sent.stream, 4);
    else await until(() => rig.engine.asked.length === 1, "the engine to be asked");
    rig.router.destroy();
    await until(() => rig.engine.asked[0]!.destroyed, "the engine to see it", 1_000);
    await rig.quiet();
    const broken = { outcome: "broken", promptTokens: 0, completionTokens: 0 };
    expect(rig.outbox.records).toMatchObject(stream ? [broken] : []);
  }
});

test("a client that leaves at the very end pays for the whole answer", async () => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open(whole);
    const { asked, synced } = rig.outbox.hold();
    const sent = rig.chat({ stream });
    await asked.promise;
    sent.stream.cancel();
    // Frames of a connection arrive in order. With this answer, the agent has seen the other request's end.
    await rig.chat({}, { model: "other" }).answer;
    synced.resolve();
    expect(await rig.records()).toMatchObject([{ outcome: "finished", source: "engine", completionTokens: 2 }]);
  }
});

test("a client that leaves 16 MiB unread delays its engine, and is cut after a minute [D3]", async () => {
  const clock = new VirtualClock();
  let written = 0;
  await using rig = await Rig.open(
    (socket) => {
      saying(opening)(socket);
      const more = () => {
        for (let n = 0; n < 50 && !socket.destroyed; n++) {
          const text = chunk(++written, { content: "x".repeat(100_000) });
          const bytes = `${text.length.toString(16)}\r\n${text}\r\n`;
          if (!socket.write(bytes)) return void socket.once("drain", more);
        }
        if (!socket.destroyed) setImmediate(more);
      };
      more();
    },
    { clock },
  );
  const { stream } = rig.chat({ stream: true });
  await once(stream, "head");
  stream.frames.pause();
  let before = { written, atMs: performance.now() };
  const isHeld = () => {
    if (written !== before.written) before = { written, atMs: performance.now() };
    return rig.ingress.unreadBytes > 16 << 20 && performance.now() - before.atMs > 250;
  };
  await until(isHeld, "the engine to be delayed", 30_000);
  expect(written).toBeGreaterThan(160);
  expect(rig.ingress.unreadBytes).toBeGreaterThan(16 << 20);
  expect(rig.ingress.unreadBytes).toBeLessThan(17 << 20);
  clock.advance(59_999);
  expect(rig.slot.running).toBe(1);
  clock.advance(1);
  await rig.quiet();
  const [record] = rig.outbox.records;
  expect(record).toMatchObject({ outcome: "client-ended", promptTokens });
  expect(record!.completionTokens).toBeGreaterThan(0);
  expect(record!.completionTokens).toBeLessThanOrEqual(written);
});

test("a slow client gets every event, in order", async () => {
  const words = 4_000;
  const script: EngineScript = (socket) => {
    saying(opening)(socket);
    for (let n = 1; n <= words; n++) writeChunk(socket, word(n));
    writeChunk(socket, closing(words));
    endEvents(socket);
  };
  await using rig = await Rig.open(script, { rules: { ...chatRules, contextTokens: 10_000 } });
  const { stream, answer } = rig.chat({ stream: true });
  let paused = 0;
  stream.on("data", () => {
    if (paused++ % 20 !== 0) return;
    stream.frames.pause();
    setTimeout(() => stream.frames.resume(), 1);
  });
  const { text, ending } = await answer;
  expect(ending).toBe("complete");
  const said = choicesOf(text).map((choice) => (choice as { delta: { content?: string } }).delta.content ?? "");
  expect(said.join("")).toBe(Array.from({ length: words }, (_, n) => `w${n + 1} `).join(""));
  expect(eventsOf(text).at(-1)).toBe("[DONE]");
});

/** Resolves when the client has read this many more bytes, or all. */
async function take(stream: SimStream, bytes: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  const onData = (chunk: Buffer) => void ((taken += chunk.length) >= bytes && resolve());
  stream.on("data", onData).once("over", resolve);
  stream.frames.resume();
  await promise;
  stream.off("data", onData).off("over", resolve);
  stream.frames.pause();
}

test.each([true, false])(
  "a client that reads 64 KiB every 20 s gets all of an answer in one long piece (streamed: %s)",
  async (isStreamed) => {
    const clock = new VirtualClock();
    const long = "€".repeat(350_000);
    await using rig = await Rig.open(delta({ content: long }, "stop") + usageEvent(7, 1) + done, { clock });
    const { stream, answer } = rig.chat({ stream: isStreamed });
    await once(stream, "head");
    stream.frames.pause();
    for (let taken = 0; !stream.isOver && taken < long.length * 3; taken += 64 << 10) {
      await take(stream, 64 << 10);
      await rig.chat({}, { model: "other" }).answer; // The agent has seen it.
      clock.advance(20_000);
    }
    stream.frames.resume();
    const { text, ending } = await answer;
    expect([text.includes(long), ending]).toEqual([true, "complete"]);
    expect(rig.outbox.records).toMatchObject([{ outcome: "finished" }]);
  },
);
