/**
 * Requests that an engine, a limit, the disk or a stop ends: the client's answer, the usage record, the released place.
 */
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { ends } from "@weiche/shared/frames/frame.ts";
import { expect, test } from "vitest";
import { choicesOf, Rig, until } from "./ingress-rig.ts";
import { endEvents, saying, writeChunk } from "./scripted-engine.ts";
import { closing, opening, openStalled, promptTokens, received, whole, word } from "./stalled-stream.ts";

test("the limit of a request ends a stream with an error event, and costs the generated tokens [S19.9]", async () => {
  const clock = new VirtualClock();
  await using rig = await openStalled(4, { clock });
  const { stream, answer } = rig.chat({ stream: true }, { remainingMs: 5_000 });
  await received(stream, 5);
  clock.advance(4_999);
  expect(rig.slot.running).toBe(1);
  clock.advance(1);
  const { text, ending } = await answer;
  expect(ending).toBe("error");
  expect(choicesOf(text).at(-1)).toMatchObject({ code: "timeout", param: null });
  expect(text).not.toContain("[DONE]");
  await until(() => rig.engine.asked[0]!.destroyed, "the engine to see it");
  expect(rig.outbox.records).toMatchObject([
    { outcome: "limit-ended", source: "counted", promptTokens, completionTokens: 4 },
  ]);
});

test("the limit of a request before the first byte is a 504 [S6.8 S19.9]", async () => {
  const clock = new VirtualClock();
  await using rig = await openStalled(4, { clock });
  rig.slot.gate = new Promise(() => {});
  const { answer } = rig.chat();
  await until(() => rig.slot.requests.length === 1, "the request to wait");
  expect(rig.slot.requests[0]!.leftMs, "the slot knows it").toBe(600_000);
  clock.advance(600_000);
  expect(await answer).toMatchObject({ status: 504, ending: "complete" });
  expect(rig.outbox.records).toMatchObject([{ outcome: "limit-ended", promptTokens: 0, completionTokens: 0 }]);
});

test("an engine that is gone ends its streams at once, and they are free [S20.5]", async () => {
  await using rig = await openStalled(2);
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
  await using rig = await openStalled(1, { clock });
  rig.life.measured(rig.slot.endpoint, 0);
  const { stream, answer } = rig.chat({ stream: true });
  await received(stream, 2);
  clock.advance(59_000);
  writeChunk(rig.engine.asked[0]!, word(2));
  await until(() => rig.life.lastMs(rig.slot.endpoint) === clock.monotonicMs(), "the event to be read");
  clock.advance(59_000);
  expect(rig.slot.suspected).toEqual([]);
  clock.advance(1_000);
  expect((await answer).ending).toBe("error");
  expect(rig.slot.suspected).toEqual(["silent"]);
  await until(() => rig.engine.asked[0]!.destroyed, "the engine to see it");
});

test("an engine that does not listen is a 503 that tells the router so, and is suspected", async () => {
  await using rig = await openStalled(1);
  rig.engine.server.close();
  expect(await rig.chat().answer).toMatchObject({ status: 503, retryAfter: 1, code: ends.engineAway });
  expect(rig.slot.suspected).toEqual(["refused"]);
  expect(rig.outbox.records).toEqual([]);
});

test("a slot's refusal is passed on unchanged", async () => {
  await using rig = await openStalled(1);
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

test("the terminator waits until the record is on disk", async () => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open(whole);
    const { asked, synced } = rig.outbox.hold();
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

test("an engine that is gone after its complete answer does not change it", async () => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open(whole);
    const { asked, synced } = rig.outbox.hold();
    const sent = rig.chat({ stream });
    await asked.promise;
    rig.slot.loseEngine();
    synced.resolve();
    expect(await sent.answer).toMatchObject({ status: 200, ending: "complete" });
    expect(rig.outbox.records).toMatchObject([{ outcome: "finished", completionTokens: 2 }]);
  }
});

test("an answer whose record cannot be kept is incomplete", async () => {
  await using rig = await Rig.open(whole);
  rig.outbox.sync = () => Promise.reject(new Error("EIO"));
  const streamed = await rig.chat({ stream: true }).answer;
  expect(streamed.ending).toBe("error");
  expect(streamed.text).not.toContain("[DONE]");
  expect(await rig.chat().answer).toMatchObject({ status: 500 });
  expect(rig.bugs).toHaveLength(2);
});

test("no request is admitted while usage cannot be recorded [A4]", async () => {
  await using rig = await openStalled(1);
  rig.outbox.admitting = false;
  const { status, text, code } = await rig.chat().answer;
  expect({ status, code, error: (JSON.parse(text) as { error: object }).error }).toMatchObject({
    ...{ status: 503, code: ends.nodeBusy, error: { code: "overloaded" } },
  });
  expect(rig.engine.saw).toEqual([]);
});

test("a model without rules is a 503, and a record that is not a router's is a 500", async () => {
  await using rig = await openStalled(1);
  expect(await rig.chat({}, { model: "other" }).answer).toMatchObject({ status: 503 });
  expect(await rig.chat({}, { factor: -1 }).answer).toMatchObject({ status: 500, ending: "complete" });
  expect(rig.bugs).toHaveLength(1);
});

test("a stop lets running requests end, admits none, and ends them after its grace [B6]", async () => {
  const clock = new VirtualClock();
  await using rig = await openStalled(1, { clock });
  const first = rig.chat({ stream: true });
  const second = rig.chat({ stream: true });
  await Promise.all([received(first.stream, 2), received(second.stream, 2)]);
  const stopped = rig.ingress.stop(10_000);
  expect(await rig.chat().answer).toMatchObject({ status: 503 });
  writeChunk(rig.engine.asked[0]!, closing(1));
  endEvents(rig.engine.asked[0]!);
  const whole = await Promise.race([first.answer, second.answer]);
  expect(whole.ending).toBe("complete");
  clock.advance(10_000);
  await stopped;
  const answers = await Promise.all([first.answer, second.answer]);
  expect(new Set(answers.map((answer) => answer.ending))).toEqual(new Set(["complete", "error"]));
  expect(new Set(rig.outbox.records.map((record) => record.outcome))).toEqual(new Set(["broken", "finished"]));
});

test.each(["finished", "broken", "client-ended"])(
  "a stop waits 2 s after its grace for the record of a %s answer, and no answer looks complete [B6]",
  async (outcome) => {
    const clock = new VirtualClock();
    const ends = outcome === "finished" ? closing(1) : "";
    await using rig = await Rig.open(saying(opening + word(1) + ends), { clock });
    const { asked } = rig.outbox.hold();
    const { stream, answer } = rig.chat({ stream: true });
    await received(stream, 2);
    if (outcome === "client-ended") stream.cancel();
    if (outcome !== "broken") await asked.promise;
    let isStopped = false;
    const stopped = rig.ingress.stop(10_000).then(() => (isStopped = true));
    clock.advance(10_000);
    await asked.promise;
    clock.advance(1_999);
    await rig.chat().answer; // Waits until the effects of the clock have happened.
    expect([isStopped, rig.ingress.running]).toEqual([false, 1]);
    clock.advance(1);
    await stopped;
    const { text, ending } = await answer;
    expect([text.includes("[DONE]"), ending]).toEqual([false, outcome === "client-ended" ? undefined : "error"]);
    expect(rig.summaries.map(({ record }) => record?.outcome)).toContain(outcome);
    expect(rig.bugs).toEqual([]);
  },
);

test("a limit that exceeds the window is refused, even if the engine accepts it [S4.5 S19.6]", async () => {
  await using rig = await openStalled(1);
  const { status, text } = await rig.chat({ stream: true, max_tokens: 1_018 }).answer;
  expect(status).toBe(400);
  expect(JSON.parse(text)).toMatchObject({
    error: {
      type: "ContextWindowExceededError",
      message: expect.stringMatching(/1024 tokens.*7 in the messages, 1018 in/) as string,
    },
  });
  expect(await rig.records()).toEqual([]);
  const fits = rig.chat({ stream: true, max_tokens: 1_017 });
  await received(fits.stream, 2);
});
