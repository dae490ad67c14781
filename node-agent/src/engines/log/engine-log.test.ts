import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createEngineLogs, type EngineLogs } from "./engine-log.ts";

let directory: string;
let logs: EngineLogs;
const clock = new VirtualClock();

beforeEach(() => {
  directory = temporaryDirectory();
  const events = { engineLogFailed: (error: unknown) => expect.unreachable(String(error)) };
  const every = { rotateEveryMs: 1_000, readEveryMs: 1_000_000 };
  logs = createEngineLogs({ directory, clock, events, bytesMax: 100, olderFilesMax: 2, ...every });
});
afterEach(() => {
  logs[Symbol.dispose]();
});

const read = (file: string) => readFile(join(directory, file), "utf8");

async function rotated(): Promise<void> {
  const before = clock.pending;
  clock.step();
  // The next run is scheduled when this one has ended.
  while (clock.pending < before) await new Promise((resolve) => setImmediate(resolve));
}

test("an engine that keeps its file open continues to write to it after a rotation", async () => {
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

test("older files are numbered by age, and the oldest is removed", async () => {
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

test("the last lines are from the engine that started last, at most 50, with limited lengths", async () => {
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

/** Returns the contents of all files in the directory. */
async function everything(): Promise<string> {
  const texts = await Promise.all((await readdir(directory)).map(read));
  return texts.join("");
}

test("only known words of a serving engine are kept, and no file contains more of its output [E7]", async () => {
  await using file = await logs.open("a-model");
  await file.write("loading took 3 s\n");
  await logs.serve("a-model");
  await logs.serve("a-model");
  await file.write('parse: error parsing grammar: unknown rule "canary"\n\nroot ::= "canary"\ncut in the mid');
  expect(await logs.lastLines("a-model")).toEqual(["loading took 3 s", "error parsing grammar"]);
  await file.write("st: canary RuntimeError: CUDA error: canary\n");
  expect((await logs.lastLines("a-model")).at(-1)).toBe("RuntimeError … CUDA error");
  await file.write(`${"canary ".repeat(100)}\nKilled\n`);
  expect((await logs.lastLines("a-model")).at(-1)).toBe("Killed");
  await file.write("canary after its output was cut\nSegmentation fault canary\n");
  expect((await logs.lastLines("a-model")).at(-1)).toBe("Segmentation fault");
  expect(await everything()).not.toContain("canary");
});

test("output of a serving engine is read every two seconds, and the next engine starts with a file again", async () => {
  await using file = await logs.open("a-model");
  await logs.serve("a-model");
  await file.write("out of memory\n");
  await using next = await logs.open("a-model");
  await next.write("why it does not start\n");
  expect(await read("a-model.log")).toBe("out of memory\nwhy it does not start\n");
});

test.skipIf(process.platform !== "linux")(
  "the next agent follows an engine that serves, and leaves the file of an engine that loads",
  async () => {
    const file = await logs.open("a-model");
    const engine = spawn("cat", { stdio: ["pipe", file.fd, file.fd] });
    await file.close();
    const said = async (line: string) => {
      engine.stdin!.write(`${line}\n`);
      const printed = () => next.lastLines("a-model");
      await expect.poll(printed).toContain(line);
    };
    const events = { engineLogFailed: (error: unknown) => expect.unreachable(String(error)) };
    using next = createEngineLogs({ directory, clock, events });
    await next.adopt("a-model", engine.pid!);
    await said("Killed as it loads");
    await logs.serve("a-model");
    await next.adopt("a-model", engine.pid!);
    engine.stdin!.write("canary\n");
    await said("Segmentation fault");
    expect(await everything()).not.toContain("canary");
    engine.stdin!.end();
    await once(engine, "exit");
  },
);
