/** Vectors made from the text alone: the same text has the same vector in every engine, and each has length 1. */
import { hash } from "node:crypto";
import { createRandom } from "@weiche/shared/testing/random.ts";

/** `dimensions` cuts the full vector, which is then brought to length 1 again, as Matryoshka models do. */
export function embed(text: string, fullDimensions: number, dimensions = fullDimensions): number[] {
  const random = createRandom(hash("sha256", text, "buffer").readUInt32LE());
  const vector = Array.from({ length: Math.min(dimensions, fullDimensions) }, () => random.next() * 2 - 1);
  const norm = Math.hypot(...vector);
  return vector.map((value) => Math.fround(value / norm));
}

/** Little-endian float32, base64. */
export function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString("base64");
}
