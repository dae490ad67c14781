/** Restores a backup into a router's database and repeats the actions that took rights away since. */
import { createReadStream, existsSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import { lockDirectory } from "@weiche/shared/files/directory-lock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { openDatabase, type DatabaseConfig } from "../db/database.ts";
import { primaryOf } from "../db/database-hosts.ts";
import { startEmbeddedServer, type EmbeddedServerEvents } from "../db/embedded-server.ts";
import { readDeeds, replayDeeds, type Replayed } from "./audit-replay.ts";
import { restoreBackup, type Restored, type RestoreProgress } from "./restore.ts";

/** Reads and checks a whole backup without changing anything. `source`: the bytes of the file. */
export function checkBackup(source: Readable): Promise<Restored> {
  return restoreBackup(decompressed(source), undefined, () => {});
}

/** `auditLogs`: log files of routers. Actions in them that took rights away after the backup are repeated. */
export async function restoreInto(
  source: Readable,
  config: DatabaseConfig,
  auditLogs: readonly string[],
  onProgress: (progress: RestoreProgress) => void,
  clock: Clock = systemClock,
): Promise<Restored & { readonly replayed: Replayed }> {
  requireOwner(config);
  using _lock = lockDirectory(config.stateDir);
  const restored = await fill(source, config, onProgress, clock);
  const { at } = restored.header;
  await using database = await openDatabase(config, clock, {
    ...quiet,
    databaseConnectionLost() {},
    databaseMoved() {},
    schemaIsNewer() {},
  });
  const context = { database, clock, portalUrl: "", origin: { actor: "operator", source: "restore" } };
  const deeds = await readDeeds(linesOf(auditLogs), at);
  return { ...restored, replayed: await replayDeeds(context, deeds, at) };
}

const quiet: EmbeddedServerEvents = { databaseRestarted() {}, databaseRestartFailed() {} };

async function fill(
  source: Readable,
  { stateDir, databaseUrl }: DatabaseConfig,
  onProgress: (progress: RestoreProgress) => void,
  clock: Clock,
): Promise<Restored> {
  if (databaseUrl !== undefined)
    return restoreBackup(decompressed(source), { connectionString: await primaryOf(databaseUrl) }, onProgress);
  await using server = await startEmbeddedServer(stateDir, clock, quiet);
  return await restoreBackup(decompressed(source), server.connection, onProgress);
}

/** Refuses to run as root in another user's data directory, because its router could not read root's files. */
function requireOwner({ stateDir }: DatabaseConfig): void {
  if (process.getuid?.() !== 0 || !existsSync(stateDir)) return;
  const { uid } = statSync(stateDir);
  if (uid !== 0)
    throw new StartError(
      `${stateDir} belongs to user ${uid}: run this as that user, with the backup on standard input`,
    );
}

function decompressed(source: Readable): AsyncIterable<Buffer> {
  const decompressor = createZstdDecompress();
  pipeline(source, decompressor).catch(() => {}); // the reader of the decompressor gets the error
  return readable(decompressor);
}

async function* readable(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* stream;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isOurs = code?.startsWith("ZSTD_") || code === "Z_BUF_ERROR" || code === "Z_DATA_ERROR";
    throw isOurs ? new StartError("the backup is damaged or incomplete: it cannot be decompressed") : error;
  }
}

async function* linesOf(files: readonly string[]): AsyncGenerator<string> {
  for (const file of files) yield* createInterface({ input: createReadStream(file) });
}
