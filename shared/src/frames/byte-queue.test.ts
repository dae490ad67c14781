import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteQueue } from "./byte-queue.ts";

test("a queue returns its bytes in order, in slices no longer than requested", () => {
  const step = fc.oneof(
    fc.record({ text: fc.string({ unit: "binary", maxLength: 6_000 }), isText: fc.boolean() }),
    fc.record({ bytesMax: fc.integer({ min: 1, max: 20_000 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new ByteQueue();
      const [put, got]: [Buffer[], Buffer[]] = [[], []];
      const lengths: [given: number, max: number][] = [];
      for (const now of steps) {
        if ("text" in now) {
          const bytes = Buffer.from(now.text);
          put.push(bytes);
          queue.push(now.isText ? now.text : bytes);
        } else if (queue.bytes > 0) {
          const slice = queue.shift(now.bytesMax);
          lengths.push([slice.length, now.bytesMax]);
          got.push(Buffer.from(slice));
        }
      }
      while (queue.bytes > 0) got.push(Buffer.from(queue.shift(1 << 20)));
      expect(lengths.filter(([given, max]) => given < 1 || given > max)).toEqual([]);
      expect(Buffer.concat(got).equals(Buffer.concat(put))).toBe(true);
    }),
  );
});

/** Returns the external memory that the queue takes for these pieces, per byte. */
function memoryPerByte(pieces: readonly string[]): number {
  const queue = new ByteQueue();
  const before = process.memoryUsage().arrayBuffers;
  for (const piece of pieces) queue.push(piece);
  return (process.memoryUsage().arrayBuffers - before) / queue.bytes;
}

const event = `data: ${"x".repeat(200)}\n\n`;

test("small pieces take little more memory than their bytes", () => {
  expect(memoryPerByte(Array.from({ length: 40_000 }, () => event))).toBeLessThan(1.2);
});

test("a small piece between long ones takes little more memory than its bytes", () => {
  const long = "x".repeat(5_000);
  const pieces = Array.from({ length: 1_000 }, () => [long, event]).flat();
  expect(memoryPerByte(pieces)).toBeLessThan(1.2);
});
