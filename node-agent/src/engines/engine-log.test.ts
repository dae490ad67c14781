import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createEngineLogs, type EngineLogs } from "./engine-log.ts";

let directory: string;
let logs: EngineLogs;
const clock = new VirtualClock();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "weiche-logs-"));
  const events = { engineLogFailed: (error: unknown) => expect.unreachable(String(error)) };
  logs = createEngineLogs({ directory, clock, events, bytesMax: 100, olderFilesMax: 2, rotateEveryMs: 1_000 });
});
afterEach(async () => {
  logs[Symbol.dispose]();
  await rm(directory, { recursive: true });
});

const read = (file: string) => readFile(join(directory, file), "utf8");

async function rotated(): Promise<void> {
  const before = clock.pending;
  clock.step();
  // The next round is timed when this one has ended.
  while (clock.pending < before) await new Promise((resolve) => setImmediate(resolve));
}

test("an engine that keeps its file open goes on writing to it after a rotation", async () => {
  await using file = await logs.open("a-model");
  await file.write(`${"x".repeat(120)}\n`);
  await rotated();
  await file.write("after\n");
  expect(await read("a-model.log")).toBe("after\n");
  expect(await read("a-model.log.1")).toBe(`${"x".repeat(120)}\n`);
});

test("a small file is not rotated", async () => {
  await using file = await logs.open("a-model");
  await file.write("short\n");
  await rotated();
  expect(await readdir(directory)).toEqual(["a-model.log"]);
});

test("older files are numbered by age, and the oldest goes", async () => {
  await using file = await logs.open("a-model");
  for (const letter of ["a", "b", "c"]) {
    await file.write(letter.repeat(101));
    await rotated();
  }
  expect(new Set(await readdir(directory))).toEqual(new Set(["a-model.log", "a-model.log.1", "a-model.log.2"]));
  expect([await read("a-model.log.1"), await read("a-model.log.2")]).toEqual(["c".repeat(101), "b".repeat(101)]);
});

test("a large file is rotated when an engine starts", async () => {
  await (async () => {
    await using file = await logs.open("a-model");
    await file.write("x".repeat(120));
  })();
  await using _file = await logs.open("a-model");
  expect(await read("a-model.log")).toBe("");
});

test("the last lines are those of the engine started last, at most 50, none endless", async () => {
  expect(await logs.lastLines("a-model")).toEqual([]);
  await (async () => {
    await using file = await logs.open("a-model");
    await file.write("an earlier engine\n");
  })();
  await using file = await logs.open("a-model");
  expect(await logs.lastLines("a-model")).toEqual([]);
  await file.write(`${Array.from({ length: 60 }, (_, index) => index).join("\n")}\n\n${"y".repeat(5_000)}`);
  const lines = await logs.lastLines("a-model");
  expect(lines).toHaveLength(50);
  expect([lines[0], lines.at(-2), lines.at(-1)!.length]).toEqual(["11", "59", 1_000]);
});
