/** Only lines for the journal have priorities. */
import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const script = `
  import { createLog } from ${JSON.stringify(join(import.meta.dirname, "log.ts"))};
  const log = createLog("test", "debug");
  for (const level of ["fatal", "error", "warn", "info", "debug"]) log[level]("x");
`;

/** Returns the lines that a program logs to a file, which replaces systemd's stream to the journal. */
function logged(streamOf: (file: number) => string): string[] {
  const directory = mkdtempSync(join(tmpdir(), "weiche-journal-"));
  const file = openSync(join(directory, "out"), "w");
  const env = { ...process.env, JOURNAL_STREAM: streamOf(file) };
  spawnSync(process.execPath, ["--input-type=module", "-e", script], { env, stdio: ["ignore", file, "inherit"] });
  closeSync(file);
  const lines = readFileSync(join(directory, "out"), "utf8").trimEnd().split("\n");
  rmSync(directory, { recursive: true });
  return lines;
}

test("lines for the journal begin with their priority", () => {
  const lines = logged((file) => `${fstatSync(file).dev}:${fstatSync(file).ino}`);
  expect(lines.map((line) => line.slice(0, 4))).toEqual(["<2>{", "<3>{", "<4>{", "<6>{", "<7>{"]);
});

test("lines for other outputs have no priority", () => {
  expect(logged(() => "1:2").map((line) => line.slice(0, 1))).toEqual(["{", "{", "{", "{", "{"]);
});
