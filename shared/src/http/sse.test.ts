import { expect, test } from "vitest";
import { SseParser, type SseEvent } from "./sse.ts";

const stream = Buffer.from('data: {"a":"ü€😀"}\r\n\r\n: ping\n\ndata:x\ndata: y\n\ndata: [DONE]\n\n');
const events: SseEvent[] = [
  { kind: "data", data: '{"a":"ü€😀"}' },
  { kind: "comment" },
  { kind: "data", data: "x\ny" },
  { kind: "data", data: "[DONE]" },
];

test("the events of a stream do not depend on how its bytes are cut", () => {
  for (let first = 0; first <= stream.length; first++) {
    for (const second of [first, Math.min(first + 1, stream.length), stream.length]) {
      const parser = new SseParser();
      const parts = [stream.subarray(0, first), stream.subarray(first, second), stream.subarray(second)];
      expect(parts.flatMap((part) => parser.push(part))).toEqual(events);
    }
  }
});

test.each(["\n", "\r\n", "\r"])("lines may end with %j, even at the end of a chunk", (end) => {
  const bytes = Buffer.from(["data: a", "", ": ping", "data: b", "data: c", "", "data: d", "", ""].join(end));
  for (let cut = 0; cut <= bytes.length; cut++) {
    const parser = new SseParser();
    const told = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((part) => parser.push(part));
    const data = told.flatMap((one) => (one.kind === "data" ? [one.data] : []));
    expect([data, told.length, parser.unfinished]).toEqual([["a", "b\nc", "d"], 4, false]);
  }
});

const ofLines = (text: string) => {
  const parser = new SseParser();
  const bytes = Buffer.from(text);
  return [bytes.subarray(0, 9), bytes.subarray(9)].flatMap((part) => parser.push(part)).concat(parser.end());
};
const data = (text: string): SseEvent => ({ kind: "data", data: text });

test("events without an empty line between them are several if each is a JSON object or the terminator", () => {
  expect(ofLines('data: {"a":1}\ndata: {"b":2}\n\ndata: {"c":3}\ndata: [DONE]\n')).toEqual([
    ...['{"a":1}', '{"b":2}', '{"c":3}', "[DONE]"].map(data),
  ]);
});

test("an event of several lines stays whole if its first line is not a JSON object", () => {
  expect(ofLines('data: {\ndata: "a":1}\n\ndata: {"b"}\ndata: {"c":3}\n\ndata: 1\ndata: 2\n\n')).toEqual([
    ...['{\n"a":1}', '{"b"}\n{"c":3}', "1\n2"].map(data),
  ]);
});

test.each(['data: {"a":1}\n', 'data: {"a":1}', '\ufeffdata: {"a":1}\r', 'data: {\ndata: "a":1}'])(
  "%j at the end of a stream is an event, because it is whole",
  (text) => expect(ofLines(text)).toMatchObject([{ kind: "data", data: expect.stringMatching(/^\{\s*"a":1\}$/) }]),
);

test.each(['data: {"a":1', "data: {\n", "data: x\n", "da", ": ping", "data: \xff"])(
  "%j at the end of a stream is no event",
  (text) => expect(ofLines(text)).toEqual([]),
);

test("an error in a field of its own is an event, and any other text there is malformed", () => {
  expect(ofLines('error: {"code":500}\n\n')).toEqual([data('{"error": {"code":500}}')]);
  expect(ofLines("error: it broke\n\n")).toMatchObject([{ kind: "malformed" }]);
});

test("ignores fields without output and events without data", () => {
  const told =
    "event: message\nid: 7\nretry: 3000\ndata: x\n\nid\n\ndata:\n\ndata: \n\ndata\n\nevent: end\n\ndata: y\n\n";
  expect(new SseParser().push(Buffer.from(told))).toEqual([
    { kind: "data", data: "x" },
    { kind: "data", data: "y" },
  ]);
});

test.each([
  ["bytes that are not UTF-8", Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a]), "invalid UTF-8"],
  [
    "a line of another protocol",
    Buffer.from("proxy error: Failed to read connection\n"),
    "a line that is no field of an event",
  ],
  ["an event over the limit", Buffer.from(`data: ${"x".repeat(200)}`), "event too large"],
])("%s are malformed", (_name, bytes, reason) => {
  expect(new SseParser(100).push(bytes)).toContainEqual({ kind: "malformed", reason });
});
