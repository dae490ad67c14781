import { expect, test } from "vitest";
import { ChunkGaps, gapBoundsMs } from "./chunk-gaps.ts";

const bucketsOf = (gaps: ChunkGaps) =>
  Object.fromEntries(
    [...gaps.buckets].flatMap((count, bucket) => (count > 0 ? [[gapBoundsMs[bucket] ?? "more", count]] : [])),
  );

test("each chunk after the first counts one gap in the bucket of its length, and the sum is the time from first to last", () => {
  const gaps = new ChunkGaps();
  gaps.take(1, 1_000);
  expect([gaps.count, gaps.sumMs]).toEqual([0, 0]);
  gaps.take(2, 1_010);
  gaps.take(3, 1_020.5);
  gaps.take(4, 12_000);
  gaps.take(5, 22_000);
  expect(bucketsOf(gaps)).toEqual({ 10: 1, 25: 1, 10_000: 1, more: 1 });
  expect([gaps.count, gaps.sumMs]).toEqual([4, 21_000]);
});

test("chunks of one read have no gap between them, and a read without output counts no gap", () => {
  const gaps = new ChunkGaps();
  gaps.take(3, 0);
  gaps.take(3, 40);
  gaps.take(5, 50);
  expect(bucketsOf(gaps)).toEqual({ 1: 3, 50: 1 });
  expect([gaps.count, gaps.sumMs]).toEqual([4, 50]);
});
