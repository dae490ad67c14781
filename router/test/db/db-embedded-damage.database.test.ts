import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { openDatabase } from "../../src/db/database.ts";
import { isPostmaster, readPostmaster } from "../../src/db/postmaster.ts";
import { silent, temporaryFolder, until } from "./database-fixture.ts";

const folder = temporaryFolder();
const onSocket = folder.path;
/** A path that is too long for a socket, so its server listens on loopback with the password. */
const onLoopback = join(folder.path, "x".repeat(90));
const clusterOf = (stateDir: string) => join(stateDir, "database/cluster");
const pidFile = join(clusterOf(onSocket), "postmaster.pid");

const openIn = (stateDir: string) => openDatabase({ stateDir }, systemClock, silent);

async function opens(stateDir: string): Promise<void> {
  await using database = await openIn(stateDir);
  expect((await database.pool.query("select 7 as seven")).rows).toEqual([{ seven: 7 }]);
}

/** Lists the server processes of the folder, whatever its files contain. */
function servers(): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => isPostmaster(pid, clusterOf(onSocket)));
}

/** Starts a server that a killed router leaves behind. */
async function leftBehind(): Promise<number> {
  const script = join(import.meta.dirname, "open-database.ts");
  const child = spawn(process.execPath, [script, onSocket], { stdio: ["pipe", "pipe", "inherit"] });
  await once(createInterface(child.stdout), "line");
  child.kill("SIGKILL");
  await once(child, "exit");
  return readPostmaster(clusterOf(onSocket))!.pid;
}

beforeAll(async () => {
  mkdirSync(onLoopback);
  await Promise.all([onSocket, onLoopback].map(opens));
});
afterAll(() => {
  for (const pid of servers()) process.kill(pid, "SIGKILL");
  folder[Symbol.dispose]();
});

const all: readonly (readonly [string, (content: string) => string])[] = [
  ["empty", () => ""],
  ["cut off in its first line", (content) => content.slice(0, 3)],
  ["cut off after its first line", (content) => content.slice(0, content.indexOf("\n") + 1)],
  ["zeros", (content) => "\0".repeat(content.length)],
  ["garbage", () => "\u0007garbage\n".repeat(9)],
  ["of another process", (content) => content.replace(/^\d+/, "1")],
];

/** Each case costs a recovery, so the quick run has only some. */
const damages = process.env["WEICHE_NIGHTLY"] ? all : all.filter(([name]) => /^(cut off after|garbage)/.test(name));

describe("a pid file of the server that is", () => {
  test.each(damages)("%s does not prevent a start", async (_, damage) => {
    const pid = await leftBehind();
    const content = readFileSync(pidFile, "utf8");
    process.kill(pid, "SIGKILL");
    await until("the server is gone", 10_000, () => servers().length === 0);
    writeFileSync(pidFile, damage(content));
    await using database = await openIn(onSocket);
    expect((await database.pool.query("select 7 as seven")).rows).toEqual([{ seven: 7 }]);
  });

  test.each(damages)("%s while the server still runs lets the router start with one server", async (_, damage) => {
    const pid = await leftBehind();
    writeFileSync(pidFile, damage(readFileSync(pidFile, "utf8")));
    await using database = await openIn(onSocket);
    expect((await database.pool.query("select 7 as seven")).rows).toEqual([{ seven: 7 }]);
    expect(servers()).toEqual([readPostmaster(clusterOf(onSocket))!.pid]);
    expect(isPostmaster(pid, clusterOf(onSocket))).toBe(servers()[0] === pid);
  });
});

describe("a password file", () => {
  const file = (stateDir: string) => join(stateDir, "database/password");

  test.each([
    ["gone", undefined],
    ["empty", ""],
    ["garbage", "\0\u0007\n"],
  ])("that is %s is not needed on a socket, and is named in the error on loopback", async (_, content) => {
    const before = readFileSync(file(onLoopback), "utf8");
    for (const stateDir of [onSocket, onLoopback]) {
      if (content === undefined) rmSync(file(stateDir));
      else writeFileSync(file(stateDir), content);
    }
    await opens(onSocket);
    const opening = openIn(onLoopback);
    await expect(opening).rejects.toThrow(StartError);
    await expect(opening).rejects.toThrow(`${file(onLoopback)}`);
    writeFileSync(file(onLoopback), before);
    await opens(onLoopback);
  });
});
