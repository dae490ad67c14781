/** Password hashing in its own threads, so that nothing else in the process waits for it. */
import { execFileSync } from "node:child_process";
import { argon2Sync } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startPasswordThreads } from "../../src/sign-in/password-threads.ts";

const job = { password: "correct horse battery", salt: Buffer.from("a salt of a hash"), tagLength: 32 };
const cheap = { memoryKib: 64, passes: 1 };

test("parallel hashing returns the right hashes", async () => {
  await using threads = startPasswordThreads();
  expect([1, 2]).toContain(threads.atOnceMax);
  const tags = await Promise.all(Array.from({ length: threads.atOnceMax }, () => threads.derive({ ...job, ...cheap })));
  const parameters = { nonce: job.salt, parallelism: 1, tagLength: 32, memory: 64, passes: 1 };
  const tag = argon2Sync("argon2id", { message: job.password, ...parameters });
  for (const each of tags) expect(Buffer.from(each)).toEqual(tag);
});

test("hashing works while all of Node.js's own threads are busy", async () => {
  await using threads = startPasswordThreads();
  await threads.derive({ ...job, ...cheap });
  const folder = mkdtempSync(join(tmpdir(), "weiche-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // Opening a pipe waits for its writer, so these reads occupy all threads of Node.js.
  const pipes = [0, 1, 2, 3].map((n) => join(folder, `pipe${n}`));
  execFileSync("mkfifo", pipes);
  const opening = pipes.map((pipe) => open(pipe, "r"));
  expect((await threads.derive({ ...job, ...cheap })).length).toBe(32);
  for (const pipe of pipes) {
    const writer = openSync(pipe, "r+");
    onTestFinished(() => closeSync(writer));
  }
  for (const file of await Promise.all(opening)) await file.close();
});

test.runIf(process.platform === "linux")("the hashing threads have a lower priority than the process", async () => {
  const nicenesses = () =>
    readdirSync("/proc/self/task").map((task) =>
      Number(
        readFileSync(`/proc/self/task/${task}/stat`, "utf8")
          .replace(/^.*\) /s, "")
          .split(" ")[16],
      ),
    );
  const before = nicenesses();
  await using threads = startPasswordThreads();
  await threads.derive({ ...job, ...cheap });
  const own = nicenesses().filter((niceness) => niceness === Math.min(19, before[0]! + 10));
  expect(own.length).toBe(1);
});
