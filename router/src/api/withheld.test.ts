import { expect, test } from "vitest";
import { UnfinishedEvent } from "./withheld.ts";

const events = Buffer.from('data: {"a":1}\n\ndata: {"b":2}\n\n\ndata: x\n\n: comment\ndata: y\n\ndata: unfin');

/** Yields every way to divide the bytes into three pieces. */
function* divisions(bytes: Buffer): Generator<readonly Buffer[]> {
  for (let first = 1; first < bytes.length - 1; first++)
    for (let second = first + 1; second < bytes.length; second++)
      yield [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
}

test("exactly the finished events are passed on, whatever the pieces", () => {
  for (const pieces of divisions(events)) {
    const withheld = new UnfinishedEvent();
    let passed = "";
    for (const piece of pieces) {
      passed += withheld.push(piece)?.toString() ?? "";
      expect(passed === "" || passed.endsWith("\n\n")).toBe(true);
    }
    expect(passed + withheld.rest).toBe(events.toString());
    expect(withheld.rest?.toString()).toBe("data: unfin");
    expect(withheld.torn).toBe(false);
  }
});

test("bytes that were passed on do not change when later bytes arrive", () => {
  const withheld = new UnfinishedEvent();
  withheld.push(Buffer.from("data: one"));
  const passed = withheld.push(Buffer.from("\n\ndata: t"));
  withheld.push(Buffer.from("wo\n"));
  expect(withheld.push(Buffer.from("\n"))?.toString()).toBe("data: two\n\n");
  expect(passed?.toString()).toBe("data: one\n\n");
});

test(
  "an event of 256 KiB that arrives byte by byte is held cheaply, and passed on in pieces when it grows",
  { timeout: 2000 },
  () => {
    const withheld = new UnfinishedEvent();
    const byte = Buffer.from("x");
    let passed = 0;
    for (let length = 1; length <= 256 << 10; length++) passed += withheld.push(byte)?.length ?? 0;
    expect(passed).toBe(0);
    expect(withheld.push(byte)).toHaveLength((256 << 10) + 1);
    expect(withheld.torn).toBe(true);
    expect(withheld.rest).toBeUndefined();
    expect(withheld.push(Buffer.from("\n\n"))?.toString()).toBe("\n\n");
    expect(withheld.torn).toBe(false);
  },
);
