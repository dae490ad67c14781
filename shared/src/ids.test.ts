import { expect, test } from "vitest";
import { isUuidv7, uuidv7, uuidv7TimeMs } from "./ids.ts";

test("a request id contains the millisecond of its creation", () => {
  const id = uuidv7({ now: () => 1_795_000_123_456 });
  expect(isUuidv7(id)).toBe(true);
  expect(uuidv7TimeMs(id)).toBe(1_795_000_123_456);
});

test("ids of one millisecond differ, and ids of later milliseconds sort after them", () => {
  const ids = new Set(Array.from({ length: 1000 }, () => uuidv7({ now: () => 5 })));
  expect(ids.size).toBe(1000);
  expect(uuidv7({ now: () => 6 }) > [...ids].sort().at(-1)!).toBe(true);
});

test.each(["", "x", "00000000-0000-4000-8000-000000000000", "00000000-0000-7000-c000-000000000000"])(
  "%j is not a request id",
  (text) => {
    expect(isUuidv7(text)).toBe(false);
  },
);
