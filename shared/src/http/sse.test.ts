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
