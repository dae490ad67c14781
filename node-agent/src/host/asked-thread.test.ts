import { execFileSync } from "node:child_process";
import { openSync, closeSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { AskedThread } from "./asked-thread.ts";

const answerMsMax = 10_000;
const clock = new VirtualClock();
let directory: string;
let lost: string[];
let thread: AskedThread<unknown>;

beforeEach(() => {
  directory = temporaryDirectory();
  lost = [];
});
afterEach(async () => {
  await thread[Symbol.asyncDispose]();
});

/** Returns a thread whose module runs this code for each question. `number` counts questions from 1. */
function threadThat(does: string): void {
  const program = join(directory, "thread.mjs");
  const file = JSON.stringify(directory);
  const lines = [
    `import { parentPort, threadId } from "node:worker_threads"; import fs from "node:fs";`,
    `const directory = ${file}; const answer = (value) => parentPort.postMessage(value); let number = 0;`,
    `parentPort.on("message", () => { number++; ${does} });`,
  ];
  writeFileSync(program, lines.join("\n"));
  const path = "/somewhere";
  const onLost = (reason: string) => lost.push(reason);
  thread = new AskedThread({ clock, program: pathToFileURL(program), path, answerMsMax, onLost });
}

/** Repeats the question until there is an answer. */
async function askedUntilAnswered(): Promise<unknown> {
  for (;;) {
    try {
      return await thread.ask();
    } catch {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

test("a thread that exits right after its answer has not died", async () => {
  threadThat("answer(number); process.exit(0)");
  const asked = thread.ask();
  // Both events arrive in one turn of the event loop.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  expect(await asked).toBe(1);
  expect(lost).toEqual([]);
});

test("one thread answers every question, and gets only PATH of our environment", async () => {
  threadThat("answer([number, process.env])");
  const env = { PATH: "/somewhere", LC_ALL: "C" };
  expect([await thread.ask(), await thread.ask()]).toEqual([
    [1, env],
    [2, env],
  ]);
  expect(lost).toEqual([]);
});

test.each([
  ["throws", `throw new Error("broken")`, "it died: broken"],
  ["ends", "process.exit(3)", "it ended with code 3"],
  ["ends as if all was well", "process.exit(0)", "it ended with code 0"],
  ["fills the memory", "const all = []; for (;;) all.push(new Array(1e5).fill(0.5))", /^it died: .*memory/],
])("a thread that %s is reported once, and the next question starts another one", async (_name, does, reason) => {
  threadThat(`if (fs.existsSync(directory + "/again")) return answer(threadId); ${does}`);
  await expect(thread.ask()).rejects.toThrow(reason);
  expect(lost).toEqual([expect.stringMatching(reason)]);
  writeFileSync(join(directory, "again"), "");
  expect(await askedUntilAnswered()).toEqual(expect.any(Number));
  expect(lost).toHaveLength(1);
});

test("a thread that does not answer in time is ended, and the next question starts another one", async () => {
  threadThat(`if (fs.existsSync(directory + "/again")) return answer("well"); for (;;);`);
  const asked = thread.ask();
  clock.advance(answerMsMax - 1);
  expect(lost).toEqual([]);
  clock.advance(1);
  await expect(asked).rejects.toThrow("no answer within 10 s");
  expect(lost).toEqual(["no answer within 10 s"]);
  writeFileSync(join(directory, "again"), "");
  expect(await askedUntilAnswered()).toBe("well");
});

test("no second thread starts while the kernel holds a silent one", async () => {
  const pipe = join(directory, "pipe");
  execFileSync("mkfifo", [pipe]);
  threadThat(
    `fs.appendFileSync(directory + "/asked", "x"); if (fs.existsSync(directory + "/again")) return answer("well"); fs.readFileSync(directory + "/pipe");`,
  );
  const asked = thread.ask();
  // The thread has opened the pipe for reading once opening it for writing does not block.
  const end = await openedForWriting(pipe);
  clock.advance(answerMsMax);
  await expect(asked).rejects.toThrow("no answer");
  for (let n = 0; n < 3; n++) await expect(thread.ask()).rejects.toThrow("has not ended yet");
  writeFileSync(join(directory, "again"), "");
  closeSync(end);
  expect(await askedUntilAnswered()).toBe("well");
  expect(lost).toHaveLength(1);
});

async function openedForWriting(pipe: string): Promise<number> {
  for (;;) {
    try {
      return openSync(pipe, 0o4001); // O_WRONLY | O_NONBLOCK
    } catch {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

test("a second question at the same time is rejected", async () => {
  threadThat("answer(number)");
  const first = thread.ask();
  await expect(thread.ask()).rejects.toThrow("not been answered yet");
  expect(await first).toBe(1);
});
