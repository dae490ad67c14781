/** Writes backups to private files, removes incomplete ones, and removes the oldest ones of a folder. */
import { createWriteStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import type { ClientConfig } from "pg";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { dumpDatabase, type DumpProgress } from "./dump.ts";

export interface BackupDone {
  /** The path, or "-" for standard output. */
  readonly file: string;
  /** ISO 8601. The backup contains everything committed before. */
  readonly at: string;
  readonly tables: number;
  /** Size of the file; undefined for standard output. */
  readonly bytes?: number;
  /** Older backups that were removed from the folder. */
  readonly removed?: readonly string[];
}

const compression = {
  params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 },
};
/** Names of backups in a folder. Their order by name is their order by time. */
const namePattern = /^weiche-\d{8}T\d{6}Z\.backup$/;

/** Writes a backup to a new file, or to `output` if `file` is "-". Throws a `StartError` if the file exists. */
export async function backUpTo(
  file: string,
  connection: ClientConfig,
  output: Writable,
  onProgress: (progress: DumpProgress) => void,
): Promise<BackupDone> {
  if (file === "-") return { file, ...(await dumpInto(output, connection, onProgress)) };
  if (await exists(file)) throw new StartError(`${file} exists already: name a new file`);
  const unfinished = `${file}.unfinished`;
  try {
    const sink = createWriteStream(unfinished, { mode: 0o600, flush: true });
    const dumped = await dumpInto(sink, connection, onProgress);
    const { size } = await stat(unfinished);
    await rename(unfinished, file);
    await syncFolder(dirname(file));
    return { file, ...dumped, bytes: size };
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/** Writes a backup named after `nowMs` into the folder, then removes all but the `keep` newest. */
export async function backUpInto(
  folder: string,
  keep: number,
  nowMs: number,
  backUp: (file: string) => Promise<BackupDone>,
): Promise<BackupDone> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const done = await backUp(join(folder, `weiche-${time}.backup`));
  const names = (await readdir(folder)).filter((name) => namePattern.test(name)).toSorted();
  const removed = names.slice(0, Math.max(0, names.length - keep));
  for (const name of removed) await rm(join(folder, name));
  return { ...done, removed };
}

async function dumpInto(sink: Writable, connection: ClientConfig, onProgress: (progress: DumpProgress) => void) {
  const compressor = createZstdCompress(compression);
  const written = pipeline(compressor, new PassThrough(), sink);
  written.catch(() => {}); // awaited below
  const { at, tables } = await dumpDatabase(connection, compressor, onProgress).catch(async (error: unknown) => {
    compressor.destroy();
    await written.catch(() => {});
    throw error;
  });
  await written;
  return { at, tables: tables.length };
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined)) !== undefined;
}

async function syncFolder(directory: string): Promise<void> {
  await using folder = await open(directory, "r");
  await folder.sync();
}
