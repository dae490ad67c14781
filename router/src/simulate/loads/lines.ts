/** Reads a text file line by line, in pieces, because a trace may be larger than memory. */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { StartError, unreadable } from "@weiche/shared/files/start-error.ts";

const pieceBytes = 65_536;
/** An unpacked file is held in memory, because it is read several times. */
const unpackedBytesMax = 256 * 2 ** 20;
/** A longer line is not that of a request. */
const lineLengthMax = 2 ** 20;

type Pieces = () => Iterable<Uint8Array>;
export type Lines = () => Generator<string, void, undefined>;

/**
 * Opens a file for several passes. Unpacks gzip and zstd. Each pass yields lines without their ends: a last line without
 * an end counts, an empty rest does not. Throws `StartError` if the file cannot be read or is not text.
 */
export function openLines(file: string): Lines {
  const pieces = piecesOf(file);
  return function* () {
    const decoder = new TextDecoder();
    let [rest, count] = ["", 0];
    for (const piece of pieces()) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) yield withoutReturn(line);
      count += lines.length;
      if (rest.length > lineLengthMax)
        throw new StartError(`${file}:${count + 1}: the line is too long: a load has one line for each request`);
    }
    if (rest !== "") yield withoutReturn(rest);
  };
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function piecesOf(file: string): Pieces {
  const read = () => readPieces(file);
  const [first] = read();
  if (first === undefined) return () => [];
  const unpack = packings.find(({ magic }) => first.subarray(0, magic.length).equals(magic))?.unpack;
  if (unpack) {
    const all = unpacked(file, unpack);
    return () => partsOf(all);
  }
  if (first.includes(0))
    throw new StartError(`cannot read ${file}: it is not text. Unpack it first, unless gzip or zstd has packed it`);
  return read;
}

type Unpack = typeof gunzipSync | typeof zstdDecompressSync;

const packings: readonly { readonly magic: Buffer; readonly unpack: Unpack }[] = [
  { magic: Buffer.from([0x1f, 0x8b]), unpack: gunzipSync },
  { magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), unpack: zstdDecompressSync },
];

function unpacked(file: string, unpack: Unpack): Buffer {
  try {
    return unpack(readFileSync(file), { maxOutputLength: unpackedBytesMax });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ERR_BUFFER_TOO_LARGE")
      throw new StartError(`cannot read ${file}: it has more than 256 MiB when it is unpacked. Unpack it first`);
    throw new StartError(`cannot read ${file}: it is damaged or incomplete, and cannot be unpacked. Copy it again`);
  }
}

function* partsOf(bytes: Buffer): Generator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

function* readPieces(file: string): Generator<Buffer, void, undefined> {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, "r");
    if (fstatSync(descriptor).isFIFO())
      throw new StartError(`cannot read ${file}: it is a pipe, and a load is read several times. Write it to a file`);
    const bytes = Buffer.allocUnsafe(pieceBytes);
    for (let count; (count = readSync(descriptor, bytes, 0, pieceBytes, null)) > 0;) yield bytes.subarray(0, count);
  } catch (error) {
    throw error instanceof StartError ? error : unreadable(file, error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
