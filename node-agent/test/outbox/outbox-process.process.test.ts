import { spawn, spawnSync, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { createRandom } from "@weiche/shared/random.ts";
import { openOutboxDirectory } from "../../src/outbox/outbox-disk.ts";
import { openOutbox, type Outbox } from "../../src/outbox/outbox.ts";
import { segmentName } from "../../src/outbox/segment.ts";
import { eventsInWords } from "./outbox-steps.ts";
import { numberOf, usageRecord } from "./usage-records.ts";

const writerProgram = join(import.meta.dirname, "outbox-writer-process.ts");
const limits = { segmentBytesMax: 64 << 10, reserveBytes: 64 << 10, freeBytesMin: 64 << 10, keepMs: 3_600_000 };

const fullDiskProgram = join(import.meta.dirname, "outbox-full-disk-process.ts");
const smallDisks = mountable();

let directory: string;
let heard: string[];
const children: ChildProcessByStdio<null, Readable, null>[] = [];

beforeEach(() => {
  directory = temporaryDirectory();
  heard = [];
});

afterEach(async () => {
  for (const child of children.splice(0)) {
    const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
    child.kill("SIGKILL");
    await exited;
  }
});

async function open(): Promise<Outbox> {
  const events = eventsInWords((text) => heard.push(text));
  return openOutbox(await openOutboxDirectory(directory), systemClock, events, limits);
}

async function found(): Promise<Set<number>> {
  await using outbox = await open();
  return new Set((await outbox.read(10_000_000)).records.map(({ record }) => numberOf(record)));
}

/** Starts a process that appends and prints. `said` grows as it runs. */
function startWriter(command: readonly string[]): {
  child: ChildProcessByStdio<null, Readable, null>;
  said: () => string[];
} {
  const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  let text = "";
  child.stdout.on("data", (bytes: Buffer) => (text += bytes.toString()));
  return { child, said: () => text.split("\n").slice(0, -1) };
}

function resolved(said: readonly string[]): number[] {
  return said.filter((line) => /^\d+$/.test(line)).map(Number);
}

const rounds = process.env["WEICHE_NIGHTLY"] ? 200 : 8;

it("every resolved append is found after a kill at any time [A1]", { timeout: rounds * 10_000 }, async () => {
  const random = createRandom(7);
  const all: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { child, said } = startWriter([process.execPath, writerProgram, directory, String(round * 1_000_000)]);
    const closed = once(child.stdout, "close");
    await expect.poll(() => said().length, { timeout: 20_000, interval: 2 }).toBeGreaterThan(random.below(3_000));
    child.kill("SIGKILL");
    await closed;
    all.push(...resolved(said()));
  }
  const there = await found();
  expect(all.filter((number) => !there.has(number))).toEqual([]);
  expect(all.length).toBeGreaterThan(rounds * 8);
  expect(heard.filter((line) => line.startsWith("damaged"))).toEqual([]);
});

describe("an outbox on a real full disk", () => {
  it("writes records to the reserve if its file is /dev/full [A4]", async () => {
    const outbox = await open();
    symlinkSync("/dev/full", join(directory, segmentName(1)));
    await outbox.append(usageRecord(1));
    expect(outbox.admitting).toBe(false);
    expect(heard).toEqual(["full ENOSPC"]);
    await outbox.append(usageRecord(2));
    await expect.poll(() => outbox.admitting, { timeout: 5_000 }).toBe(true);
    await outbox[Symbol.asyncDispose]();
    rmSync(join(directory, segmentName(1)), { force: true });
    expect(await found()).toEqual(new Set([1, 2]));
  });

  it("loses no resolved append if a limit on file sizes ends its writes [A4]", async () => {
    const limited = ["prlimit", "--fsize=50000", process.execPath, writerProgram, directory, "0", "40000"];
    const { child, said } = startWriter(limited);
    await expect.poll(() => resolved(said()).length, { timeout: 20_000 }).toBeGreaterThan(2_000);
    const closed = once(child.stdout, "close");
    child.kill("SIGKILL");
    await closed;
    const there = await found();
    expect(resolved(said()).filter((number) => !there.has(number))).toEqual([]);
    expect(said()).toContain("full EFBIG");
    expect(heard.filter((line) => line.startsWith("damaged"))).toEqual([]);
  });

  it.each(smallDisks)(
    "on %s closes admission within 1 s, opens it within 5 s of new room, and loses nothing [A4]",
    async (_name, size) => {
      const script = `mount -t tmpfs -o size=${size} none "$1" && exec "$2" "$3" "$1"`;
      const command = ["-rnm", "bash", "-c", script, "-", directory, process.execPath, fullDiskProgram];
      const { child, said } = startWriter(["unshare", ...command]);
      await once(child.stdout, "close");
      const seen = JSON.parse(said().at(-1)!) as Record<string, unknown>;
      expect(seen).toMatchObject({ before: true, stillClosed: true, missing: [] });
      expect(seen["heard"]).toEqual([expect.stringMatching(/^full (low|ENOSPC)$/), "room"]);
      expect(seen["closedMs"]).toBeLessThan(1_000);
      expect(seen["openedMs"]).toBeLessThan(5_000);
    },
  );
});

/** Returns file systems to mount. This needs a user namespace, so the list is empty where the system allows none. */
function mountable(): [string, string][] {
  const tried = spawnSync("unshare", ["-rnm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/mnt"]);
  if (tried.status === 0) return [["a file system of 1 MiB", "1m"]];
  console.warn("not run: a file system of 1 MiB (needs `unshare -rnm` to be allowed, or the nightly run as root)");
  return [];
}
