/** When an engine that owes an answer counts as hanging: not while it shows any sign of work. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { LoopClock } from "@weiche/shared/time/loop-clock.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { BusyEngine } from "./busy-engine.ts";
import { Rig, until } from "./ingress-rig.ts";
import {
  beginEvents,
  delta,
  done,
  endEvents,
  httpHead,
  respond,
  respondEvents,
  saying,
  writeChunk,
} from "./scripted-engine.ts";

const word = delta({ content: "x" });
const last = delta({ content: "x" }, "stop") + done;

/**
 * Opens several streams that stop after one word. `/tokenize` is answered, like by the front of an engine that hangs.
 */
async function openSilent(streams: number, clock = new VirtualClock(), lifeClock: Clock = clock) {
  const rig = await Rig.open(
    (socket, { path }) => (path === "/tokenize" ? respond(socket, 200, '{"count":3000}') : saying(word)(socket)),
    { clock, lifeClock, dialect: "vllm" },
  );
  rig.life.measured(rig.slot.endpoint, 0);
  const asked = Array.from({ length: streams }, () => rig.chat({ stream: true }));
  await Promise.all(asked.map(({ stream }) => once(stream, "data")));
  return { rig, clock, asked };
}

/** Waits until the work that a timer has begun is done. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("a request that gets no byte keeps waiting while a counter moves, and ends when no counter does [C6]", async () => {
  const { rig, clock, asked } = await openSilent(1);
  await using _ = rig;
  let work = 10;
  rig.life.measured(rig.slot.endpoint, work - 1);
  for (let minute = 0; minute < 5; minute++) {
    rig.life.measured(rig.slot.endpoint, work++);
    clock.advance(50_000);
  }
  await settled();
  expect(rig.slot.suspected).toEqual([]);
  rig.life.measured(rig.slot.endpoint, work - 1);
  clock.advance(10_000);
  expect((await asked[0]!.answer).ending).toBe("error");
  expect(rig.slot.suspected).toEqual(["silent"]);
});

test("another stream's byte also does, but an answer of its front or another engine's counter does not", async () => {
  const { rig, clock, asked } = await openSilent(2);
  await using _ = rig;
  clock.advance(50_000);
  const heard = asked.map(({ stream }) => once(stream, "data"));
  writeChunk(rig.engine.asked[0]!, word);
  await Promise.race(heard);
  clock.advance(50_000);
  await settled();
  expect(rig.slot.suspected).toEqual([]);
  const other = { ...rig.slot.endpoint };
  rig.life.measured(other, 1);
  rig.life.measured(other, 2);
  clock.advance(10_000);
  for (const { answer } of asked) await answer;
  expect(rig.slot.suspected).toEqual(["silent", "silent"]);
});

test("comments are not a sign of life, because llama-server's HTTP threads send them every second while its generating thread hangs [C6]", async () => {
  const { rig, clock, asked } = await openSilent(2);
  await using _ = rig;
  for (let second = 0; second < 59; second++) {
    for (const socket of rig.engine.asked) writeChunk(socket, ":\n\n");
    await settled();
    clock.advance(1_000);
  }
  expect(rig.slot.suspected).toEqual([]);
  clock.advance(1_000);
  for (const { answer } of asked) expect((await answer).ending).toBe("error");
  expect(rig.slot.suspected).toEqual(["silent", "silent"]);
});

test("a prompt that is read for five minutes shows life by its progress [C6]", async () => {
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<Socket>();
  const clock = new VirtualClock();
  await using rig = await Rig.open(onAsked, { clock, dialect: "llama-server" });
  const { answer } = rig.chat({ stream: true });
  const socket = await asked;
  beginEvents(socket);
  const role = { role: "assistant", content: null };
  for (let part = 1; part <= 6; part++) {
    writeChunk(socket, delta(role, null, { prompt_progress: { total: 600, cache: 0, processed: part * 100 } }));
    await until(() => rig.life.lastMs(rig.slot.endpoint) === clock.monotonicMs(), "the progress to be read");
    clock.advance(55_000);
    await settled();
  }
  writeChunk(socket, last);
  endEvents(socket);
  expect(await answer).toMatchObject({ status: 200, ending: "complete" });
  expect(rig.slot.suspected).toEqual([]);
});

test("an engine without counters of work may read a prompt in silence for as long as a request may take [C6]", async () => {
  const clock = new VirtualClock();
  await using rig = await Rig.open(() => {}, { clock });
  const { answer } = rig.chat();
  await until(() => rig.engine.saw.length === 1, "the request to be asked");
  for (let minute = 0; minute < 9; minute++) {
    clock.advance(60_000);
    await settled();
  }
  expect([rig.slot.running, rig.slot.suspected]).toEqual([1, []]);
  respondEvents(rig.engine.asked[0]!, last);
  expect(await answer).toMatchObject({ status: 200, ending: "complete" });
});

/** Opens a stream with a stop sequence. The engine sends one word, and then holds back what could become the sequence. */
async function openHeldBack(stop: string, dialect: "llama-server" | "openai") {
  const clock = new VirtualClock();
  const rig = await Rig.open((socket) => saying(word)(socket), { clock, dialect });
  const { stream, answer } = rig.chat({ stream: true, stop: ["never", stop] });
  await once(stream, "data");
  const pass = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      clock.advance(60_000);
      await settled();
    }
  };
  return { rig, answer, pass };
}

test.each(["llama-server", "openai"] as const)(
  "text that %s without counters holds back, because it could become a long stop sequence, is waited for and delivered [C6]",
  async (dialect) => {
    const { rig, answer, pass } = await openHeldBack("y".repeat(2_000), dialect);
    await using _ = rig;
    await pass(9);
    expect([rig.slot.running, rig.slot.suspected]).toEqual([1, []]);
    const heldBack = "y".repeat(1_999);
    const socket = rig.engine.asked[0]!;
    writeChunk(socket, delta({ content: `${heldBack}z` }, "stop") + done);
    endEvents(socket);
    const { ending, text } = await answer;
    expect(ending).toBe("complete");
    expect(text).toContain(`${heldBack}z`);
    expect(await rig.records()).toMatchObject([{ outcome: "finished" }]);
  },
);

test("a llama-server that is silent for a minute hangs, if it holds back no more than a short stop sequence", async () => {
  const { rig, answer, pass } = await openHeldBack("y".repeat(64), "llama-server");
  await using _ = rig;
  await pass(1);
  expect((await answer).ending).toBe("error");
  expect(rig.slot.suspected).toEqual(["silent"]);
});

test("an engine that gets counters of work during a request is held to them from then on", async () => {
  const clock = new VirtualClock();
  await using rig = await Rig.open(() => {}, { clock });
  const { answer } = rig.chat();
  await until(() => rig.engine.saw.length === 1, "the request to be asked");
  clock.advance(30_000);
  rig.life.measured(rig.slot.endpoint, 1);
  clock.advance(30_000);
  expect(await answer).toMatchObject({ status: 500 });
  expect(rig.slot.suspected).toEqual(["silent"]);
});

test("silentSeconds is the limit of an engine, with or without counters [C6]", async () => {
  const clock = new VirtualClock();
  await using rig = await Rig.open(() => {}, { clock, silentMsMax: 90_000 });
  rig.life.measured(rig.slot.endpoint, 1);
  const { answer } = rig.chat();
  await until(() => rig.engine.saw.length === 1, "the request to be asked");
  clock.advance(80_000);
  await settled();
  expect(rig.slot.suspected).toEqual([]);
  clock.advance(10_000);
  expect(await answer).toMatchObject({ status: 500 });
  expect(rig.slot.suspected).toEqual(["silent"]);
});

test("each part of an answer that is not a stream is a sign of life", async () => {
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<Socket>();
  const clock = new VirtualClock();
  await using rig = await Rig.open(onAsked, { clock });
  const { answer } = rig.chat();
  const socket = await asked;
  const body = JSON.stringify({ error: { message: "no", type: "invalid_request_error", code: 400 } });
  socket.write(httpHead(400, { "content-type": "application/json", "content-length": body.length }));
  for (const letter of body.slice(0, 6)) {
    socket.write(letter);
    await settled();
    clock.advance(50_000);
  }
  socket.write(body.slice(6));
  expect((await answer).status).toBe(400);
  expect(rig.slot.suspected).toEqual([]);
});

test("a counter that a refusal moves in the engine's front is not a sign of life", async () => {
  const { rig, clock, asked } = await openSilent(1);
  await using _ = rig;
  const stall = rig.engine.script;
  const error = {
    message: "maximum context length is 1024 tokens",
    ...{ type: "BadRequestError", param: "input_tokens", code: 400 },
  };
  rig.engine.script = (socket, request) =>
    request.path === "/tokenize" ? stall(socket, request) : respond(socket, 400, JSON.stringify({ error }));
  clock.advance(50_000);
  expect((await rig.chat().answer).text).toContain("3000 in the messages");
  clock.advance(10_000);
  expect((await asked[0]!.answer).ending).toBe("error");
  expect(rig.slot.suspected).toEqual(["silent"]);
});

/** Sends a request to an engine that accepts no connection. */
async function openBusy(opened: AsyncDisposableStack, listens: string) {
  const socketPath = listens === "a port" ? undefined : join(temporaryDirectory(), "engine.sock");
  const engine = opened.use(await BusyEngine.open(last, socketPath));
  const clock = new VirtualClock();
  const rig = opened.use(await Rig.open(() => {}, { clock, endpoint: engine.endpoint }));
  rig.life.measured(rig.slot.endpoint, 0);
  const { answer } = rig.chat();
  await until(() => rig.slot.requests.length === 1, "the request to be admitted");
  const pass = async (ms: number) => {
    await settled();
    clock.advance(ms);
    await settled();
  };
  return { engine, rig, clock, answer, pass };
}

test.each(["a port", "a Unix socket"])(
  "an engine too busy to accept a connection on %s gets the same time as one that owes a byte",
  async (listens) => {
    await using opened = new AsyncDisposableStack();
    const { engine, rig, answer, pass } = await openBusy(opened, listens);
    for (let second = 0; second < 59; second++) await pass(1_000);
    expect([rig.slot.running, rig.slot.suspected]).toEqual([1, []]);
    await engine.letGo();
    await pass(20);
    expect(await answer).toMatchObject({ status: 200, ending: "complete" });
    expect(rig.faults).toEqual([]);
  },
);

test.each(["a port", "a Unix socket"])(
  "an engine that has accepted no connection on %s for a minute is silent, and gets no more requests",
  async (listens) => {
    await using opened = new AsyncDisposableStack();
    const { rig, clock, answer, pass } = await openBusy(opened, listens);
    for (let second = 0; second < 60; second++) await pass(1_000);
    expect(await answer).toMatchObject({ status: 500 });
    expect(rig.slot.suspected).toEqual(["silent"]);
    await pass(20);
    expect(clock.pending).toBe(0);
  },
);

test("while the agent itself is stopped, no engine counts as silent", async () => {
  let isStopped = false;
  const late: (() => void)[] = [];
  const clock = new VirtualClock();
  const host: Clock = {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, callback) => clock.after(delayMs, () => (isStopped ? late.push(callback) : callback())),
  };
  using loop = new LoopClock(host);
  const { rig, asked } = await openSilent(1, clock, loop);
  await using _ = rig;
  clock.advance(10_000);
  isStopped = true; // Like SIGSTOP.
  clock.advance(90_000);
  isStopped = false;
  for (const callback of late.splice(0)) callback();
  clock.advance(40_000);
  await settled();
  expect(rig.slot.suspected).toEqual([]);
  clock.advance(20_000);
  expect((await asked[0]!.answer).ending).toBe("error");
  expect(rig.slot.suspected).toEqual(["silent"]);
});
