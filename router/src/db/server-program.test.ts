import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { lastWords } from "./server-program.ts";

const directory = mkdtempSync(join(tmpdir(), "weiche-words-"));
const file = join(directory, "postgres.log");
afterAll(() => rmSync(directory, { recursive: true }));

/** Messages of PostgreSQL 18 on a full disk, while the cluster is created and while the server starts. */
const full = [
  '2026-11-24 00:18:29.667 UTC [4] FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes at block 9',
  "2026-11-24 00:18:29.667 UTC [4] HINT:  Check free disk space.",
  "2026-11-24 00:18:29.667 UTC [4] PANIC:  cannot abort transaction 1, it was already committed",
  "Aborted",
];
const lockFull =
  '2026-11-24 00:18:29 UTC [4] FATAL:  could not write lock file "postmaster.pid": No space left on device';
const other = '2026-11-24 00:18:30.001 UTC [5] FATAL:  data directory "/x" has wrong ownership';

test.each([
  ["the disk was full while the cluster was created", full, "the disk is full"],
  ["the disk was full while the server started", [lockFull], "the disk is full"],
  [
    "the disk was full at an earlier start",
    [...full, "a new start", "listening", other],
    'data directory "/x" has wrong ownership',
  ],
  ["the disk was never full", [other], 'data directory "/x" has wrong ownership'],
])("the reason why the server ended is found if %s", (_when, lines, why) => {
  writeFileSync(file, `${lines.join("\n")}\n`);
  expect(lastWords({ directory })).toBe(`${why} (${file})`);
});
