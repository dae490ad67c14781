/** Archives that have the same bytes for the same files, whenever and wherever they are made. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { basename, dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";

/** Beyond it Node.js's binary, most of a release, takes 3 times as long for 0.5 % (13), or 39 times for 12 % (19). */
const zstdLevel = 10;

/** `FOLDER.tar.zst` of a folder, which stands at the top of it. Sorted, of root, of one instant. */
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

/** The same bytes in pieces of one size: what zstd makes of them depends on how they come, and a pipe is read as it fills. */
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

/** A Debian package of `folder`, which holds `DEBIAN/control`. Needs `dpkg-deb` 1.21.18 or newer. */
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
