/**
 * Format of a segment file: a header with the number of the segment, then frames.
 *
 *   header   "WUO1", number of the segment (u64), CRC-32 of both (u32)
 *   frame    length of the payload (u32), CRC-32 of the payload (u32), payload; all numbers little-endian
 *
 * A payload is JSON text and so has no byte below 0x20, while the length of a frame always has one: no position inside a
 * payload can be mistaken for a frame. Therefore a reader can search for the next frame after damage byte by byte.
 */
import { crc32 } from "node:zlib";
import { assert } from "@weiche/shared/assert.ts";

export const headerBytes = 16;
const frameHeadBytes = 8;
/** A record has a few hundred bytes. A longer frame is damage. */
const payloadBytesMax = 64 << 10;

const magic = "WUO1";

export function segmentName(number: number): string {
  return `${String(number).padStart(12, "0")}.usage`;
}

/** Returns the number in a segment's name, or undefined for other files. */
export function segmentNumber(name: string): number | undefined {
  const match = /^(\d{12})\.usage$/.exec(name);
  return match ? Number(match[1]) : undefined;
}

export function encodeHeader(number: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.write(magic, "latin1");
  header.writeBigUInt64LE(BigInt(number), 4);
  header.writeUInt32LE(crc32(header.subarray(0, 12)), 12);
  return header;
}

/** Returns the number in a segment's header, which a renamed file keeps. Returns undefined if the header is damaged. */
export function decodeHeader(bytes: Buffer): number | undefined {
  if (bytes.length < headerBytes || bytes.toString("latin1", 0, 4) !== magic) return undefined;
  if (crc32(bytes.subarray(0, 12)) !== bytes.readUInt32LE(12)) return undefined;
  return Number(bytes.readBigUInt64LE(4));
}

export function encodeFrame(payload: Buffer): Buffer {
  assert(payload.length > 0 && payload.length <= payloadBytesMax, "a usage record fits in a frame");
  const frame = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  frame.writeUInt32LE(payload.length, 0);
  frame.writeUInt32LE(crc32(payload), 4);
  payload.copy(frame, frameHeadBytes);
  return frame;
}

export interface Frame {
  readonly payload: Buffer;
  /** Offset at which the next frame begins. */
  readonly end: number;
}

interface ParsedFrames {
  readonly frames: readonly Frame[];
  /** The ranges that are not frames, each followed by a frame. */
  readonly damaged: readonly { readonly start: number; readonly end: number }[];
  /** Offset after the last frame that was read. */
  readonly end: number;
}

/** Reads at most `max` frames from `start`. Skips damaged ranges that are followed by a frame. */
export function parseFrames(bytes: Buffer, start: number, max = Infinity): ParsedFrames {
  const frames: Frame[] = [];
  const damaged: { start: number; end: number }[] = [];
  let at = start;
  while (frames.length < max) {
    const next = nextFrame(bytes, at);
    if (!next) break;
    const begin = next.end - next.payload.length - frameHeadBytes;
    if (begin > at) damaged.push({ start: at, end: begin });
    frames.push(next);
    at = next.end;
  }
  return { frames, damaged, end: at };
}

function nextFrame(bytes: Buffer, from: number): Frame | undefined {
  for (let at = from; at + frameHeadBytes < bytes.length; at++) {
    const length = bytes.readUInt32LE(at);
    const end = at + frameHeadBytes + length;
    if (length === 0 || length > payloadBytesMax || end > bytes.length) continue;
    const payload = bytes.subarray(at + frameHeadBytes, end);
    if (crc32(payload) === bytes.readUInt32LE(at + 4)) return { payload, end };
  }
  return undefined;
}
