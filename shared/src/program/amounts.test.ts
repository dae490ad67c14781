import { expect, test } from "vitest";
import { counted, gibibytes, megabytes } from "./amounts.ts";

test("a count of one has the singular", () => {
  expect([0, 1, 2].map((count) => counted(count, "request"))).toEqual(["0 requests", "1 request", "2 requests"]);
  expect([1, 3].map((count) => counted(count, "entry", "entries"))).toEqual(["1 entry", "3 entries"]);
});

test("a small size is never shown as nothing", () => {
  expect([0, 1, 40_000_000, 2 ** 30, 1.5 * 2 ** 30].map(gibibytes)).toEqual([
    ...["0.0 GiB", "1 KiB", "38.1 MiB"],
    ...["1.0 GiB", "1.5 GiB"],
  ]);
  expect([0, 1, 40_000, 150_000, 2_500_000].map(megabytes)).toEqual([
    ...["0.0 MB", "1 KB", "40 KB"],
    ...["0.1 MB", "2.5 MB"],
  ]);
});
