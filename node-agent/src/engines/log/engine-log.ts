/**
 * Output of engines: one file each. The engine itself holds it open and keeps writing when the agent is gone. Files are
 * therefore rotated by copy and truncate, never by rename. Engines append, so they continue at the new end.
 *
 *   started ── its file keeps all output, to explain a failed start
 *      │
 *      └─ serves: the file is unlinked and replaced by a copy, which gets only known words of further output
 */
import { appendFile, copyFile, mkdir, open, readdir, readlink, realpath } from "node:fs/promises";
import { rename, rm, stat, truncate, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { every, type Clock } from "@weiche/shared/time/clock.ts";
import { knownWords } from "./engine-log-words.ts";
import { EngineOutput } from "./engine-output.ts";

export type EngineLogs = ReturnType<typeof createEngineLogs>;

export interface EngineLogEvents {
  engineLogFailed(error: unknown): void;
}

interface EngineLogOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly events: EngineLogEvents;
  /** Number of rotated files kept per engine, besides the current one. Defaults to 3. */
  readonly olderFilesMax?: number;
  readonly bytesMax?: number;
  readonly rotateEveryMs?: number;
  readonly readEveryMs?: number;
}

const linesMax = 50;
const lineCharactersMax = 1_000;
const tailBytesMax = 64 << 10;

export function createEngineLogs(options: EngineLogOptions) {
  const { directory, olderFilesMax = 3, bytesMax = 16 << 20 } = options;
  const fileOf = (name: string) => join(directory, `${name}.log`);
  const failed = (error: unknown): void => options.events.engineLogFailed(error);
  const begins = new Map<string, number>();
  /** Unlinked output files of serving engines, by name. */
  const outputs = new Map<string, EngineOutput>();

  async function rotate(name: string): Promise<void> {
    const file = fileOf(name);
    if ((await sizeOf(file)) <= bytesMax) return;
    for (let age = olderFilesMax - 1; age >= 1; age--) {
      await rename(`${file}.${age}`, `${file}.${age + 1}`).catch(ignoreMissing);
    }
    await copyFile(file, `${file}.1`);
    await truncate(file, 0);
    begins.set(name, 0);
  }

  async function rotateAll(): Promise<void> {
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const files = (await readdir(directory)).filter((file) => file.endsWith(".log"));
      for (const file of files) await rotate(file.slice(0, -".log".length));
    } catch (error) {
      failed(error);
    }
  }

  async function read(name: string): Promise<void> {
    await outputs.get(name)?.read(async (lines) => {
      const kept = lines.flatMap((line) => knownWords(line) ?? []);
      if (kept.length > 0) await appendFile(fileOf(name), `${kept.join("\n")}\n`, { mode: 0o600 });
    });
  }

  async function readAll(): Promise<void> {
    for (const name of outputs.keys()) await read(name).catch(failed);
  }

  /** Replaces the file by a copy. The engine keeps writing to the original, which then has no name. */
  async function takeName(file: string): Promise<void> {
    try {
      await copyFile(file, `${file}.new`);
      await rename(`${file}.new`, file);
    } catch (error) {
      failed(error);
      await Promise.all([rm(file, { force: true }), rm(`${file}.new`, { force: true })]);
    }
  }

  async function forget(name: string): Promise<void> {
    const output = outputs.get(name);
    outputs.delete(name);
    await output?.close();
  }

  const timers = [
    every(options.clock, options.rotateEveryMs ?? 60_000, rotateAll),
    every(options.clock, options.readEveryMs ?? 2_000, readAll),
  ];
  return {
    /** Opens the file for a new engine, which inherits the descriptor. The caller closes it. */
    async open(name: string): Promise<FileHandle> {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await read(name).catch(failed);
      await forget(name);
      await rotate(name);
      const file = await open(fileOf(name), "a", 0o600);
      begins.set(name, (await file.stat()).size);
      return file;
    },
    /** Path of the file with the kept output of an engine of this name. */
    fileOf,
    /**
     * Call this before the first request, because the engine may quote it. No named file gets its raw output
     * afterwards. Idempotent.
     */
    async serve(name: string): Promise<void> {
      const printed = outputs.has(name) ? undefined : await open(fileOf(name), "r+").catch(ignoreMissing);
      if (!printed) return;
      await takeName(fileOf(name));
      outputs.set(name, new EngineOutput(printed, await sizeOf(fileOf(name)), bytesMax));
    },
    /**
     * Continues to read the output of an engine that served under an earlier agent, if `/proc` shows its output file.
     */
    async adopt(name: string, pid: number): Promise<void> {
      const prints = `/proc/${pid}/fd/1`;
      const to = await readlink(prints).catch(() => undefined);
      if (to === undefined || outputs.has(name)) return;
      // Skips an engine that redirects its output, or that has not served and still writes to its named file.
      if (to !== join(await realpath(directory), `${name}.log (deleted)`)) return;
      const printed = await open(prints, "r+").catch(() => undefined);
      if (printed) outputs.set(name, new EngineOutput(printed, (await printed.stat()).size, bytesMax));
    },
    /** Returns the last output lines of the latest engine of this name, at most 50. */
    async lastLines(name: string): Promise<readonly string[]> {
      await read(name).catch(failed);
      const text = await readTail(fileOf(name), begins.get(name) ?? 0);
      const lines = text.split(/\r?\n/).filter((line) => line !== "");
      return lines.slice(-linesMax).map((line) => line.slice(0, lineCharactersMax));
    },
    [Symbol.dispose]() {
      for (const timer of timers) timer.cancel();
      for (const name of outputs.keys()) void forget(name).catch(failed);
    },
  };
}

async function readTail(path: string, begin: number): Promise<string> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const from = Math.max(begin, size - tailBytesMax);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(Math.max(0, size - from)), position: from });
    return buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    ignoreMissing(error);
    return "";
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(ignoreMissing))?.size ?? 0;
}

function ignoreMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  return undefined;
}
