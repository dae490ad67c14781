/** Makes reproducible archives: the same files always give the same bytes. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { basename, dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";

/**
 * Higher levels take much longer on Node.js's binary, the largest file: level 13 takes three times as long for 0.5 %,
 * level 19 39 times as long for 12 %.
 */
const zstdLevel = 10;

/** Writes a folder as `FOLDER.tar.zst`. Files are sorted, owned by root, and have one timestamp. */
export async function writeTarball(folder: string, file: string, made: Date): Promise<void> {
  const tar = spawn(
    "tar",
    [
      ...["--create", "--format=gnu", "--sort=name", "--owner=root:0", "--group=root:0", "--numeric-owner"],
      ...[`--mtime=@${seconds(made)}`, "--directory", dirname(folder), basename(folder)],
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const ended = once(tar, "close");
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: zstdLevel } });
  await pipeline(inPieces(tar.stdout), compress, createWriteStream(file));
  const [code] = (await ended) as [number];
  if (code !== 0) throw new Error(`tar ended with ${code}`);
}

const pieceBytes = 1 << 20;

/**
 * Splits bytes into pieces of one size, because zstd's output depends on the sizes of its input pieces, and a pipe
 * delivers pieces of varying size.
 */
async function* inPieces(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    held.push(chunk);
    bytes += chunk.length;
    if (bytes < pieceBytes) continue;
    const all = Buffer.concat(held);
    const whole = bytes - (bytes % pieceBytes);
    for (let at = 0; at < whole; at += pieceBytes) yield all.subarray(at, at + pieceBytes);
    held = [all.subarray(whole)];
    bytes -= whole;
  }
  if (bytes > 0) yield Buffer.concat(held);
}

/** Writes a Debian package of `folder`, which contains `DEBIAN/control`. Needs `dpkg-deb` 1.21.18 or newer. */
export function writeDebianPackage(folder: string, file: string, made: Date): void {
  const options = ["--root-owner-group", "-Zzstd", `-z${zstdLevel}`, "--threads-max=1"];
  const { error, status, stderr } = spawnSync("dpkg-deb", [...options, "--build", folder, file], {
    encoding: "utf8",
    env: { ...process.env, SOURCE_DATE_EPOCH: seconds(made) },
  });
  if (error)
    throw new Error(
      `cannot run dpkg-deb (${(error as NodeJS.ErrnoException).code}): a host with Debian or Ubuntu has it`,
    );
  if (status !== 0) throw new Error(`dpkg-deb failed: ${stderr}`);
}

function seconds(made: Date): string {
  return String(Math.trunc(made.getTime() / 1000));
}
