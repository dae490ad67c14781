/**
 * Engines that send wrong data, hang or break. Each fault ends only its own request, with an error, and its place is
 * released.
 */
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { choicesOf, Rig } from "./ingress-rig.ts";
import {
  beginEvents,
  delta,
  done,
  endEvents,
  event,
  respond,
  respondEvents,
  saying,
  usageEvent,
  writeChunk,
} from "./scripted-engine.ts";
import type { EngineScript } from "./scripted-engine.ts";

const opening = delta({ role: "assistant", content: "" }) + delta({ content: "Hello" });
const usage = usageEvent(3, 2);
/** For the rig's chat: a fifth of the bytes of `role`, `user`, `content` and `hi`. */
const estimatedTokens = 3;
const good = opening + delta({}, "stop") + usage + done;

const ofAnotherId = { id: "b" };
const opened = delta({ content: "" }, null, { id: "a" });
const bareError = (code: number) => ({ object: "error", message: "secret", type: "BadRequestError", code });

function raw(...parts: (string | Buffer)[]): EngineScript {
  return (socket) => void socket.end(Buffer.concat(parts.map((part) => Buffer.from(part))));
}

/** Faults before the first output, which become a status. */
const early: [name: string, says: EngineScript | string, fault: RegExp][] = [
  ["HTML with status 200", (socket) => respond(socket, 200, "<html>\n<h1>It works</h1>\n", "text/html"), /bad framing/],
  ["JSON instead of events", (socket) => respond(socket, 200, '{"choices":[]}\n'), /bad framing/],
  ["nothing at all", (socket) => void socket.end(), /connection lost/],
  ["an empty body", "", /unfinished|malformed/],
  ["no HTTP", raw("hello\r\n\r\n"), /bad framing: HTTP/],
  [
    "invalid UTF-8",
    (socket) =>
      respondEvents(socket, Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"\xff"}}]}\n\n', "latin1")),
    /UTF-8/,
  ],
  ["broken JSON", 'data: {"choices":[\n\n', /not valid JSON/],
  ["an event that is not an object", "data: 7\n\n", /not a JSON object/],
  ["the terminator first", done + good, /before the end/],
  ["usage only", usage + done, /before the end/],
  ["a terminator without a finish", done, /before the end/],
  [
    "an answer that was not requested",
    event({ choices: [{ index: 1, delta: { content: "x" }, finish_reason: null }] }) + good,
    /not requested/,
  ],
  ["text that is a number", delta({ content: 7 }), /content is not a string/],
  ["calls that are not a list", delta({ tool_calls: 7 }), /tool_calls is not a list/],
  ["a call without a name", delta({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }), /without a name/],
  ["an end by the engine itself", delta({ content: "x" }, "abort") + done, /ended the answer itself/],
  [
    "an error as the first event",
    event({ error: { message: "secret", type: "InternalServerError", code: 500 } }) + done,
    /engine error/,
  ],
  ["an error without `error` around it as the first event", event(bareError(500)) + done, /engine error/],
  ["a status of 500", (socket) => respond(socket, 500, '{"error":{"message":"secret"}}'), /engine error/],
  ["no content", raw("HTTP/1.1 204 No Content\r\n\r\n"), /engine error/],
  [
    "a redirection",
    raw("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"),
    /engine error/,
  ],
  ["a body of HTTP/1.0 that is cut off", raw("HTTP/1.0 200 OK\r\n\r\n", opening.slice(0, -9)), /unfinished/],
  ["a status of 200 and a cut head", raw("HTTP/1.1 200 OK\r\ncontent-"), /connection lost/],
];

test.each(early)("%s: a status, no record [C6 S18.7]", async (_name, says, fault) => {
  await using rig = await Rig.open(says);
  for (const stream of [true, false]) {
    const { status, text, ending } = await rig.chat({ stream }).answer;
    expect({ status, ending }).toEqual({ status: 500, ending: "complete" });
    expect(JSON.parse(text)).toEqual({
      error: { message: "The model's engine failed.", type: "server_error", param: null, code: "500" },
    });
  }
  expect(await rig.records()).toEqual([]);
  expect(rig.faults).toEqual([expect.stringMatching(fault), expect.stringMatching(fault)]);
  expect(rig.faults.join()).not.toContain("secret");
  rig.engine.script = (socket) => respondEvents(socket, good);
  expect((await rig.chat().answer).status).toBe(200);
});

/** Faults after the beginning of an answer has arrived. */
const late: [name: string, rest: (socket: Socket) => void, fault: RegExp][] = [
  ["a cut chunk", (socket) => socket.end("400\r\ndata: {"), /connection lost/],
  ["an end without the terminator", endEvents, /unfinished/],
  [
    "a finish that is cut",
    (socket) => (writeChunk(socket, delta({}, "stop").slice(0, -3)), endEvents(socket)),
    /unfinished/,
  ],
  [
    "an end without the terminator, and finish reasons that come too early",
    (socket) => (
      writeChunk(socket, delta({ content: "a" }, "stop") + delta({ content: "b" }, "stop")),
      endEvents(socket)
    ),
    /unfinished/,
  ],
  ["a terminator without a finish", (socket) => writeChunk(socket, done), /before the end/],
  ["an error event about its load", (socket) => writeChunk(socket, event({ error: { code: 503 } })), /out of room/],
  ["an end by the engine itself", (socket) => writeChunk(socket, delta({}, "abort") + done), /ended the answer itself/],
  [
    "a foreign line",
    (socket) => writeChunk(socket, "proxy error: Failed to read connection\n"),
    /no field of an event/,
  ],
  ["a reset", (socket) => void socket.resetAndDestroy(), /connection lost/],
  ["bytes that are not a chunk", (socket) => void socket.write("zz\r\n"), /bad framing/],
];

/** Faults that a client may provoke through the text of the model. */
const ofAnswer: typeof late = [
  [
    "an error event, then the terminator",
    (socket) => writeChunk(socket, event({ error: { code: 500 } }) + done),
    /gave up/,
  ],
  ["an error event about the request", (socket) => writeChunk(socket, event({ error: { code: 400 } })), /gave up/],
  ["an error without `error` around it", (socket) => writeChunk(socket, event(bareError(400)) + done), /gave up/],
  ["an error in a field", (socket) => writeChunk(socket, `error: ${JSON.stringify({ code: 500 })}\n\n`), /gave up/],
  [
    "another answer after the finish",
    (socket) =>
      writeChunk(
        socket,
        [opened, opened, delta({}, "stop"), delta({ content: "x" }, null, ofAnotherId), done].join(""),
      ),
    /another answer/,
  ],
  [
    "a call without a name",
    (socket) => writeChunk(socket, delta({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] })),
    /without a name/,
  ],
  ["invalid UTF-8", (socket) => writeChunk(socket, Buffer.from('data: "\xff"\n\n', "latin1")), /UTF-8/],
  ["broken JSON", (socket) => writeChunk(socket, "data: {\n\n"), /not valid JSON/],
  [
    "empty events without an end",
    (socket) => {
      const many = delta({ content: "" }).repeat(1_000);
      const pour = () => {
        while (socket.writable && socket.writableLength < many.length) writeChunk(socket, many);
        if (socket.writable) setImmediate(pour);
      };
      pour();
    },
    /without text/,
  ],
  ["an event over 8 MiB", (socket) => writeChunk(socket, `data: "${"x".repeat(9 << 20)}`), /too large/],
];

async function breakOff(rest: (socket: Socket) => void, fault: RegExp) {
  await using rig = await Rig.open(saying(opening), { newsMsMax: 20 });
  const { stream, answer } = rig.chat({ stream: true });
  stream.once("data", () => rest([...rig.engine.sockets][0]!));
  const { status, text, ending } = await answer;
  expect({ status, ending }).toEqual({ status: 200, ending: "error" });
  expect(text).not.toContain("[DONE]");
  expect(choicesOf(text).at(-1)).toEqual({
    ...{ message: "The model's engine failed.", type: "server_error", param: null, code: "500" },
  });
  const records = await rig.records();
  expect(rig.faults).toEqual([expect.stringMatching(fault)]);
  expect(rig.bugs).toEqual([]);
  return { records, text };
}

test.each(late)("%s: an error event, and a record of zero [C6 S20.5]", async (_name, rest, fault) => {
  const { records } = await breakOff(rest, fault);
  expect(records).toMatchObject([{ outcome: "broken", promptTokens: 0, completionTokens: 0 }]);
});

test.each(ofAnswer)("%s: an error event, and the received output is billed [A9 S20.5]", async (_name, rest, fault) => {
  const { records } = await breakOff(rest, fault);
  expect(records).toMatchObject([{ outcome: "limit-ended", completionTokens: 1, estimatedTokens }]);
});

/** Bodies of HTTP/1.0 end with their connection. */
const overHttp10 = raw("HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", good);

test.each<[string, EngineScript | string]>([
  ["no terminator", opening + delta({}, "stop") + usage],
  ["a terminator without its end", opening + delta({}, "stop") + usage + "data: [DONE]"],
  ["a finish without the end of its event", opening + usage + delta({}, "stop").slice(0, -2)],
  ["lines that end with a carriage return", good.replaceAll("\n", "\r")],
  ["lines that end in different ways", good.replaceAll("\n\n", "\r\n\n").replace("\r\n", "\r\r")],
  ["no empty lines between the events", good.replaceAll("\n\n", "\n")],
  ["no empty lines, and none of the last line ends", good.replaceAll("\n\n", "\r\n").trimEnd()],
  ["a byte order mark", `\ufeff${good}`],
  ["a finish with each event", good.replaceAll('"finish_reason":null', '"finish_reason":"stop"')],
  ["events that are null", event(null) + opening + event(null) + delta({}, "stop") + event(null) + usage + done],
  ["a body of HTTP/1.0, which ends with its connection", overHttp10],
])("%s: the answer is complete, and the engine's usage counts", async (_name, says) => {
  for (const stream of [true, false]) {
    await using rig = await Rig.open(says);
    const { status, text, ending } = await rig.chat({ stream }).answer;
    expect({ status, ending }).toEqual({ status: 200, ending: "complete" });
    expect(text).toContain("Hello");
    expect(await rig.records()).toMatchObject([{ outcome: "finished", promptTokens: 3, completionTokens: 2 }]);
    expect(rig.faults).toEqual([]);
  }
});

test("output in one piece with a fault reaches the client that pays for it", async () => {
  const rest = delta({ content: " world" }) + event({ error: { code: 500 } });
  const { records, text } = await breakOff((socket) => writeChunk(socket, rest), /gave up/);
  expect(text).toContain(" world");
  expect(records).toMatchObject([{ outcome: "limit-ended", completionTokens: 2 }]);
});

test("an engine that reports an error and dies from it has broken the answer, so the answer is free [A9]", async () => {
  await using rig = await Rig.open(saying(opening), { newsMsMax: 60_000 });
  const { stream, answer } = rig.chat({ stream: true });
  stream.once("data", () => {
    writeChunk(rig.engine.asked[0]!, event({ error: { code: 500 } }));
    setTimeout(() => rig.slot.loseEngine(), 50);
  });
  expect((await answer).ending).toBe("error");
  expect(await rig.records()).toMatchObject([{ outcome: "broken", promptTokens: 0, completionTokens: 0 }]);
});

test.each([
  ["two", 2, 1],
  ["three", 3, 2],
])(
  "a client that asks for %s answers of an engine that gives fewer learns it, and pays for what it received [A9]",
  async (_name, n, given) => {
    const choice = (index: number, delta: object, finish: string | null) =>
      event({ choices: [{ index, delta, finish_reason: finish }] });
    const each = (say: (index: number) => string) => Array.from({ length: given }, (_, index) => say(index)).join("");
    const begun = each((index) => choice(index, { content: "Hello" }, null));
    const rest = each((index) => choice(index, {}, "stop")) + usageEvent(3, given) + done;
    const must = `must be at most ${given}: this model's engine gives no more answers at once`;
    const error = { message: `Invalid 'n': ${must}.`, type: "invalid_request_error", param: "n", code: "400" };
    await using rig = await Rig.open(saying(begun));
    const { stream, answer } = rig.chat({ n, stream: true });
    stream.once("data", () => (writeChunk(rig.engine.asked[0]!, rest), endEvents(rig.engine.asked[0]!)));
    expect(choicesOf((await answer).text).at(-1)).toEqual(error);
    expect(await rig.records()).toMatchObject([{ outcome: "limit-ended", promptTokens: 3, completionTokens: given }]);
    rig.engine.script = (socket) => respondEvents(socket, begun + rest);
    const { status, text } = await rig.chat({ n, stream: false }).answer;
    expect([status, JSON.parse(text)]).toEqual([400, { error }]);
    expect(await rig.records()).toHaveLength(1);
    expect(rig.faults).toEqual([]);
  },
);

test("an error after the role still becomes a status, because nothing was sent [S6.8]", async () => {
  await using rig = await Rig.open((socket) => {
    saying(delta({ role: "assistant", content: "" }))(socket);
    setTimeout(() => writeChunk(socket, event({ error: { code: 503 } })), 20);
  });
  expect(await rig.chat({ stream: true }).answer).toMatchObject({ status: 503, retryAfter: 1 });
});

test("code points that are split between packets are joined", async () => {
  const bytes = Buffer.from(delta({ content: "Weiche ⇄ 𝄞" }) + delta({}, "stop") + done);
  await using rig = await Rig.open((socket) => {
    socket.setNoDelay(true);
    beginEvents(socket);
    let at = 0;
    const next = () => {
      if (at >= bytes.length) return endEvents(socket);
      writeChunk(socket, bytes.subarray(at, ++at));
      setImmediate(next);
    };
    next();
  });
  const { text } = await rig.chat().answer;
  expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: "Weiche ⇄ 𝄞" } }] });
});

test("a surrogate pair that is split between two events is joined, and an unpaired surrogate or NUL becomes U+FFFD", async () => {
  const said = delta({ content: "a\0\ud83d" }) + delta({ content: "\ude00b\ud83d" }) + delta({}, "stop");
  await using rig = await Rig.open(opening + said + usage + done);
  const { text } = await rig.chat({ stream: false }).answer;
  expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: "Helloa\ufffd\ud83d\ude00b\ufffd" } }] });
});
