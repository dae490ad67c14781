/**
 * What engines print: one file each, held open by the engine itself, so that it goes on writing when the agent is gone.
 * Files are therefore rotated by copying and cutting, never by renaming: engines append, so they go on at the new end.
 */
import { copyFile, mkdir, open, readdir, rename, stat, truncate, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { every, type Clock } from "@weiche/shared/clock.ts";

export interface EngineLogs extends Disposable {
  /** Opens the file for a new engine, which inherits the descriptor; the caller closes it. */
  open(name: string): Promise<FileHandle>;
  /** The path of the file that an engine of this name writes to. */
  fileOf(name: string): string;
  /** The last lines of the engine that was started last under this name, at most 50. */
  lastLines(name: string): Promise<readonly string[]>;
}

export interface EngineLogEvents {
  engineLogFailed(error: unknown): void;
}

export interface EngineLogOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly events: EngineLogEvents;
  /** An engine has its file and so many older ones. */
  readonly olderFilesMax?: number;
  readonly bytesMax?: number;
  readonly rotateEveryMs?: number;
}

const linesMax = 50;
const lineCharactersMax = 1_000;
const tailBytesMax = 64 << 10;

export function createEngineLogs(options: EngineLogOptions): EngineLogs {
  const { directory, olderFilesMax = 3, bytesMax = 16 << 20 } = options;
  const fileOf = (name: string) => join(directory, `${name}.log`);
  /** Where the present engine's output begins in its file. */
  const begins = new Map<string, number>();

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
      options.events.engineLogFailed(error);
    }
  }

  const rotation = every(options.clock, options.rotateEveryMs ?? 60_000, rotateAll);
  return {
    async open(name) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await rotate(name);
      const file = await open(fileOf(name), "a", 0o600);
      begins.set(name, (await file.stat()).size);
      return file;
    },
    fileOf,
    async lastLines(name) {
      const text = await readTail(fileOf(name), begins.get(name) ?? 0);
      const lines = text.split(/\r?\n/).filter((line) => line !== "");
      return lines.slice(-linesMax).map((line) => line.slice(0, lineCharactersMax));
    },
    [Symbol.dispose]: () => rotation.cancel(),
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
