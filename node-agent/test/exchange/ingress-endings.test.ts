/** Every way in which a request ends: what its client is told, what is recorded, and what is given back. */
import { once } from "node:events";
import type { Socket } from "node:net";
import type { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { expect, test } from "vitest";
import {
  beginEvents,
  chatRules,
  choicesOf,
  endEvents,
  event,
  eventsOf,
  respondEvents,
  Rig,
  until,
  writeChunk,
  type EngineScript,
  type RigOptions,
} from "./ingress-rig.ts";

const promptTokens = 7;

/** A chunk as vLLM sends it, with the usage that runs along. */
function chunk(completion: number, delta: object, finish: string | null = null): string {
  const usage = { prompt_tokens: promptTokens, completion_tokens: completion, total_tokens: promptTokens + completion };
  return event({ choices: [{ index: 0, delta, finish_reason: finish }], usage });
}

const opening = chunk(0, { role: "assistant", content: "" });
const word = (n: number) => chunk(n, { content: `w${n} ` });
const closing = (n: number) =>
  chunk(n, {}, "stop") +
  event({ choices: [], usage: { prompt_tokens: promptTokens, completion_tokens: n, total_tokens: promptTokens + n } }) +
  event("[DONE]");

/** Says so many words, and then nothing more. */
function saying(words: number, sockets: Socket[] = []): EngineScript {
  return (socket) => {
    sockets.push(socket);
    beginEvents(socket);
    let said = opening;
    for (let n = 1; n <= words; n++) said += word(n);
    writeChunk(socket, said);
  };
}

async function openStalled(words: number, options: RigOptions = {}) {
  const sockets: Socket[] = [];
  const rig = await Rig.open(saying(words, sockets), options);
  return { rig, sockets };
}

/** Resolves when the client has so many events. */
async function received(stream: SimStream, events: number): Promise<void> {
  let seen = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.on("data", (bytes: Buffer) => {
    seen += bytes.toString().split("\n\n").length - 1;
    if (seen >= events) resolve();
  });
  await promise;
}

/** Another request from end to end: what was on its way to the agent before has arrived when it is over. */
async function roundTrip(rig: Rig): Promise<void> {
  const { script } = rig.engine;
  rig.engine.script = (socket) => respondEvents(socket, opening + closing(1));
  expect(await rig.chat().answer).toMatchObject({ status: 200 });
  rig.engine.script = script;
  rig.outbox.records.length = 0;
}

test("a client that leaves in mid-answer stops the engine and pays for what was generated", async () => {
  for (let words = 1; words <= 12; words++) {
    const { rig, sockets } = await openStalled(words);
    await using _ = rig;
    const { stream, answer } = rig.chat({ stream: true });
    await received(stream, words + 1);
    stream.cancel();
    await until(() => sockets[0]!.destroyed, "the engine to see it", 1_000);
    await answer;
    await rig.quiet();
    expect(rig.outbox.records).toMatchObject([
      { outcome: "client-ended", source: "counted", promptTokens, completionTokens: words },
    ]);
  }
});

test("a client that leaves before the first token stops the engine too, and pays nothing", async () => {
  for (const stream of [true, false]) {
    const sockets: Socket[] = [];
    await using rig = await Rig.open((socket) => void sockets.push(socket));
    const sent = rig.chat({ stream });
    await until(() => sockets.length === 1, "the engine to be asked");
    sent.stream.cancel();
    await until(() => sockets[0]!.destroyed, "the engine to see it", 1_000);
    await rig.quiet();
    expect(rig.outbox.records).toMatchObject([{ outcome: "client-ended", promptTokens: 0, completionTokens: 0 }]);
  }
});

test("a client that leaves while its answer is collected pays for what was generated", async () => {
  const { rig } = await openStalled(5);
  await using _ = rig;
  const { stream } = rig.chat();
  await until(() => rig.engine.saw.length === 1, "the engine to be asked");
  await roundTrip(rig); // the words have been read by then
  stream.cancel();
  await rig.quiet();
  expect(rig.outbox.records).toMatchObject([{ outcome: "client-ended", promptTokens, completionTokens: 5 }]);
});

test("a client that leaves while it waits is taken out of the queue", async () => {
  const { rig } = await openStalled(1);
  await using _ = rig;
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
    const { rig, sockets } = await openStalled(3);
    await using _ = rig;
    const sent = rig.chat({ stream });
    if (stream) await received(sent.stream, 4);
    else await until(() => sockets.length === 1, "the engine to be asked");
    rig.router.destroy();
    await until(() => sockets[0]!.destroyed, "the engine to see it", 1_000);
    await rig.quiet();
    const broken = { outcome: "broken", promptTokens: 0, completionTokens: 0 };
    expect(rig.outbox.records).toMatchObject(stream ? [broken] : []);
  }
});

test("the limit of a request ends a stream with an error event, and costs what was generated", async () => {
  const clock = new VirtualClock();
  const { rig, sockets } = await openStalled(4, { clock });
  await using _ = rig;
  const { stream, answer } = rig.chat({ stream: true }, { remainingMs: 5_000 });
  await received(stream, 5);
  clock.advance(4_999);
  expect(rig.slot.running).toBe(1);
  clock.advance(1);
  const { text, ending } = await answer;
  expect(ending).toBe("error");
  expect(choicesOf(text).at(-1)).toMatchObject({ code: "timeout", param: null });
  expect(text).not.toContain("[DONE]");
  await until(() => sockets[0]!.destroyed, "the engine to see it");
  expect(rig.outbox.records).toMatchObject([
    { outcome: "limit-ended", source: "counted", promptTokens, completionTokens: 4 },
  ]);
});

test("the limit of a request before the first byte is a 504", async () => {
  const clock = new VirtualClock();
  const { rig } = await openStalled(4, { clock });
  await using _ = rig;
  rig.slot.gate = new Promise(() => {});
  const { answer } = rig.chat();
  await until(() => rig.slot.requests.length === 1, "the request to wait");
  clock.advance(600_000);
  expect(await answer).toMatchObject({ status: 504, ending: "complete" });
  expect(rig.outbox.records).toMatchObject([{ outcome: "limit-ended", promptTokens: 0, completionTokens: 0 }]);
});

test("an engine that is gone ends its streams at once, unbilled", async () => {
  const { rig } = await openStalled(2);
  await using _ = rig;
  const { stream, answer } = rig.chat({ stream: true });
  await received(stream, 3);
  rig.slot.loseEngine();
  const { text, ending } = await answer;
  expect(ending).toBe("error");
  expect(choicesOf(text).at(-1)).toMatchObject({ type: "server_error", code: "engine_died" });
  expect(rig.outbox.records).toMatchObject([{ outcome: "broken", promptTokens: 0, completionTokens: 0 }]);
  expect(rig.faults).toEqual(["gone: gone"]);
});

test("an engine without a sign of life for a minute is suspected, and an event is a sign", async () => {
  const clock = new VirtualClock();
  const { rig, sockets } = await openStalled(1, { clock });
  await using _ = rig;
  const { stream, answer } = rig.chat({ stream: true });
  await received(stream, 2);
  clock.advance(59_000);
  writeChunk(sockets[0]!, word(2));
  await until(() => rig.life.lastMs(rig.slot.endpoint) === clock.monotonicMs(), "the event to be read");
  clock.advance(59_000);
  expect(rig.slot.suspected).toEqual([]);
  clock.advance(1_000);
  expect((await answer).ending).toBe("error");
  expect(rig.slot.suspected).toEqual(["silent"]);
  await until(() => sockets[0]!.destroyed, "the engine to see it");
});

test("an engine that nobody answers for is a 503, and is suspected", async () => {
  const { rig } = await openStalled(1);
  await using _ = rig;
  rig.engine.server.close();
  expect(await rig.chat().answer).toMatchObject({ status: 503, retryAfter: 1 });
  expect(rig.slot.suspected).toEqual(["refused"]);
  expect(rig.outbox.records).toEqual([]);
});

test("a slot's refusal is told as it is", async () => {
  const { rig } = await openStalled(1);
  await using _ = rig;
  rig.slot.refusal = new ApiError("model_switching", "Another model is being activated.", { retryAfterSeconds: 2.2 });
  const { status, retryAfter, ending, text } = await rig.chat({ stream: true }).answer;
  expect({ status, ending, retryAfter }).toEqual({ status: 503, ending: "complete", retryAfter: 3 });
  expect(JSON.parse(text)).toEqual({
    error: {
      ...{ message: "Another model is being activated.", type: "service_unavailable" },
      ...{ param: null, code: "model_switching" },
    },
  });
  expect(rig.outbox.records).toEqual([]);
});

/** The disk takes the record's time: `asked` when it is to be kept, `synced` lets it be. */
function holdRecord({ outbox }: Rig) {
  const [asked, synced] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  outbox.sync = () => {
    asked.resolve();
    return synced.promise;
  };
  return { asked, synced };
}

test("the terminator waits until the record is safe", async () => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open((socket) => respondEvents(socket, opening + word(1) + closing(2)));
    const { asked, synced } = holdRecord(rig);
    const sent = rig.chat({ stream });
    let text = "";
    sent.stream.on("data", (bytes: Buffer) => (text += bytes.toString()));
    await asked.promise;
    if (stream) await until(() => text.includes('"finish_reason":"stop"'), "the finish to be sent");
    expect(rig.slot.running).toBe(0);
    expect(text).not.toContain(stream ? "[DONE]" : "choices");
    synced.resolve();
    expect(await sent.answer).toMatchObject({ status: 200, ending: "complete" });
    expect(rig.outbox.records).toMatchObject([{ outcome: "finished", completionTokens: 2 }]);
  }
});

test("an engine that is gone once its answer is whole spoils nothing", async () => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open((socket) => respondEvents(socket, opening + word(1) + closing(2)));
    const { asked, synced } = holdRecord(rig);
    const sent = rig.chat({ stream });
    await asked.promise;
    rig.slot.loseEngine();
    synced.resolve();
    expect(await sent.answer).toMatchObject({ status: 200, ending: "complete" });
    expect(rig.outbox.records).toMatchObject([{ outcome: "finished", completionTokens: 2 }]);
  }
});

test("a client that leaves at the very end pays for the whole, once", async () => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open((socket) => respondEvents(socket, opening + word(1) + closing(2)));
    const { asked, synced } = holdRecord(rig);
    const sent = rig.chat({ stream });
    await asked.promise;
    sent.stream.cancel();
    // Frames of a connection arrive in order: with this answer the agent has seen the other request's end.
    await rig.chat({}, { model: "other" }).answer;
    synced.resolve();
    await rig.quiet();
    expect(rig.outbox.records).toMatchObject([{ outcome: "finished", source: "engine", completionTokens: 2 }]);
  }
});

test("an answer whose record cannot be kept is not whole", async () => {
  await using rig = await Rig.open((socket) => respondEvents(socket, opening + word(1) + closing(2)));
  rig.outbox.sync = () => Promise.reject(new Error("EIO"));
  const streamed = await rig.chat({ stream: true }).answer;
  expect(streamed.ending).toBe("error");
  expect(streamed.text).not.toContain("[DONE]");
  expect(await rig.chat().answer).toMatchObject({ status: 500 });
  expect(rig.bugs).toHaveLength(2);
});

test("nothing is taken in while usage cannot be recorded", async () => {
  const { rig } = await openStalled(1);
  await using _ = rig;
  rig.outbox.admitting = false;
  const { status, text } = await rig.chat().answer;
  expect({ status, error: (JSON.parse(text) as { error: object }).error }).toMatchObject({
    ...{ status: 503, error: { code: "overloaded" } },
  });
  expect(rig.engine.saw).toEqual([]);
});

test("a model without rules is a 503, and a record that is not the router's is a 500", async () => {
  const { rig } = await openStalled(1);
  await using _ = rig;
  expect(await rig.chat({}, { model: "other" }).answer).toMatchObject({ status: 503 });
  expect(await rig.chat({}, { factor: -1 }).answer).toMatchObject({ status: 500, ending: "complete" });
  expect(rig.bugs).toHaveLength(1);
});

test("a client that does not read holds its engine back, and is cut after a minute", async () => {
  const clock = new VirtualClock();
  let written = 0;
  await using rig = await Rig.open(
    (socket) => {
      beginEvents(socket);
      writeChunk(socket, opening);
      const more = () => {
        for (let n = 0; n < 50 && !socket.destroyed; n++) {
          const text = chunk(++written, { content: "x".repeat(1_000) });
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
    return performance.now() - before.atMs > 250;
  };
  await until(isHeld, "the engine to be held back", 30_000);
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
    beginEvents(socket);
    writeChunk(socket, opening);
    for (let n = 1; n <= words; n++) writeChunk(socket, word(n));
    writeChunk(socket, closing(words));
    endEvents(socket);
  };
  await using rig = await Rig.open(script, {
    rules: { ...chatRules, contextTokens: 10_000 },
  });
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

test("a stop lets what runs end, takes nothing new, and after its grace breaks off", async () => {
  const clock = new VirtualClock();
  const { rig, sockets } = await openStalled(1, { clock });
  await using _ = rig;
  const first = rig.chat({ stream: true });
  const second = rig.chat({ stream: true });
  await Promise.all([received(first.stream, 2), received(second.stream, 2)]);
  const stopped = rig.ingress.stop(10_000);
  expect(await rig.chat().answer).toMatchObject({ status: 503 });
  writeChunk(sockets[0]!, closing(1));
  endEvents(sockets[0]!);
  const whole = await Promise.race([first.answer, second.answer]);
  expect(whole.ending).toBe("complete");
  clock.advance(10_000);
  await stopped;
  const answers = await Promise.all([first.answer, second.answer]);
  expect(new Set(answers.map((answer) => answer.ending))).toEqual(new Set(["complete", "error"]));
  expect(new Set(rig.outbox.records.map((record) => record.outcome))).toEqual(new Set(["broken", "finished"]));
});

test.each(["finished", "broken", "client-ended"])(
  "a stop waits for a disk that takes no record of a %s answer until 2 s after its grace, and nothing looks whole",
  async (outcome) => {
    const clock = new VirtualClock();
    const ends = outcome === "finished" ? closing(1) : "";
    await using rig = await Rig.open(
      (socket) => {
        beginEvents(socket);
        writeChunk(socket, opening + word(1) + ends);
      },
      { clock },
    );
    const { asked } = holdRecord(rig);
    const { stream, answer } = rig.chat({ stream: true });
    await received(stream, 2);
    if (outcome === "client-ended") stream.cancel();
    if (outcome !== "broken") await asked.promise;
    let isStopped = false;
    const stopped = rig.ingress.stop(10_000).then(() => (isStopped = true));
    clock.advance(10_000);
    await asked.promise;
    clock.advance(1_999);
    await rig.chat().answer; // what the clock has begun has had its consequences
    expect([isStopped, rig.ingress.running]).toEqual([false, 1]);
    clock.advance(1);
    await stopped;
    const { text, ending } = await answer;
    expect([text.includes("[DONE]"), ending]).toEqual([false, outcome === "client-ended" ? undefined : "error"]);
    expect(rig.summaries.map(({ record }) => record?.outcome)).toContain(outcome);
    expect(rig.bugs).toEqual([]);
  },
);

test("a limit that the window has no room for is refused, though the engine went along", async () => {
  const { rig } = await openStalled(1);
  await using _ = rig;
  const { status, text } = await rig.chat({ stream: true, max_tokens: 1_018 }).answer;
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject({
    error: {
      type: "ContextWindowExceededError",
      message: expect.stringMatching(/1024 tokens.* 7 input tokens .* 1018 output/) as string,
    },
  });
  await rig.quiet();
  expect(rig.outbox.records).toEqual([]);
  const fits = rig.chat({ stream: true, max_tokens: 1_017 });
  await received(fits.stream, 2);
});
