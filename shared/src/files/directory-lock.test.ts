import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockDirectory } from "./directory-lock.ts";
import { StartError } from "./start-error.ts";

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "weiche-lock-"))));
afterEach(() => rmSync(directory, { recursive: true }));

/** Starts a process that holds the lock until it is killed. */
async function holder() {
  const code = `import { lockDirectory } from ${JSON.stringify(join(import.meta.dirname, "directory-lock.ts"))};
    globalThis.held = lockDirectory(${JSON.stringify(directory)}); console.log("held"); setInterval(() => {}, 1e6);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout!, "data");
  return child;
}

test("a second lock of a data directory is refused, in another process and in the same one [G1]", async () => {
  const child = await holder();
  expect(() => lockDirectory(directory)).toThrow(`another process (pid ${child.pid}) uses the data directory`);
  child.kill("SIGKILL");
  await once(child, "exit");
});

test("a killed process releases its lock", async () => {
  const child = await holder();
  child.kill("SIGKILL");
  await once(child, "exit");
  const lock = lockDirectory(directory);
  expect(() => lockDirectory(directory)).toThrow(/another process/);
  lock[Symbol.dispose]();
  lockDirectory(directory)[Symbol.dispose]();
});

test.each([
  ["zeros", Buffer.alloc(512)],
  ["garbage", Buffer.from("no lock at all, but more than a page's head. ".repeat(200))],
  ["a byte", Buffer.from("x")],
  ["the head of a database", Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(84, 0xff)])],
])("a lock file that holds %s locks as well as an empty one", async (_, content) => {
  const file = join(directory, "lock");
  writeFileSync(file, content);
  const { ino } = statSync(file);
  const lock = lockDirectory(directory);
  expect(() => lockDirectory(directory)).toThrow(/another process/);
  lock[Symbol.dispose]();
  const child = await holder();
  writeFileSync(file, content);
  expect(() => lockDirectory(directory)).toThrow(/another process/);
  expect([statSync(file).ino, readFileSync(file)]).toEqual([ino, content]); // the other process's lock is untouched
  child.kill("SIGKILL");
  await once(child, "exit");
});

test("a directory that cannot be made causes a one-line error with the reason and the variable to set", () => {
  writeFileSync(join(directory, "file"), "");
  const inside = join(directory, "file/data");
  const said = `cannot write to the data directory ${inside}: ENOTDIR; set WEICHE_DATA_DIR to use another one`;
  expect(() => lockDirectory(inside)).toThrow(new StartError(said));
});

test("a lock that cannot be opened causes a one-line error with the reason", () => {
  mkdirSync(join(directory, "lock"));
  expect(() => lockDirectory(directory)).toThrow(StartError);
  expect(() => lockDirectory(directory)).toThrow(`cannot lock the data directory ${directory}: unable to open`);
});
