/**
 * Creates bytes that a peer should not send: mangled messages, gRPC frames with wrong headers, and frames of any kind
 * of HTTP/2 and of data connections.
 */
import { frames } from "@weiche/shared/frames/frame.ts";
import { rawFrame } from "@weiche/shared/testing/raw-frames.ts";
import type { Random } from "@weiche/shared/random.ts";

export const http2Preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** An empty SETTINGS frame, which both ends send first. */
export const http2Settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);

export function randomBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

/** Returns the same bytes, or bytes of which some are flipped, cut off, repeated or inserted. */
export function mangle(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  switch (random.below(6)) {
    case 0:
      return bytes;
    case 1:
      return bytes.subarray(0, at);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), randomBytes(random, random.below(20)), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([bytes, bytes.subarray(at)]);
    default: {
      const flipped = Buffer.from(bytes);
      for (let flips = 1 + random.below(8); flips > 0 && flipped.length > 0; flips--)
        flipped[random.below(flipped.length)]! ^= 1 << random.below(8);
      return flipped;
    }
  }
}

/** Returns one gRPC message with its five header bytes, which are wrong in one of four cases. */
export function grpcFrame(random: Random, message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  if (random.chance(0.1)) head[0] = random.below(256); // claims compression, or an unknown flag
  if (random.chance(0.15)) head.writeUInt32BE(random.pick([0, 1, message.length + 7, 5 << 20, 0xffff_ffff]), 1);
  return Buffer.concat([head, message]);
}

/** Returns one HTTP/2 frame of any type, flags and stream. Its length is wrong in one of ten cases. */
export function http2Frame(random: Random): Buffer {
  const payload = randomBytes(random, random.pick([0, 1, 4, 5, 6, 8, 17, 40, 300]));
  const head = Buffer.alloc(9);
  head.writeUIntBE(random.chance(0.1) ? random.below(1 << 24) : payload.length, 0, 3);
  head[3] = random.below(12);
  head[4] = random.pick([0, 1, 4, 5, 8, 0x20, random.below(256)]);
  head.writeUInt32BE(random.pick([0, 1, 1, 2, 3, 5, 101, 0x7fff_ffff, 0xffff_ffff]), 5);
  return Buffer.concat([head, payload]);
}

/**
 * Returns one frame of a data connection, of any type and stream, mostly within the bounds of its type. Its length is
 * wrong in one of ten cases.
 */
export function hostileDataFrame(random: Random): Buffer {
  const type = random.chance(0.1) ? random.below(256) : random.pick(Object.values(frames));
  const own: Readonly<Record<number, readonly number[]>> = { 3: [1], 4: [1], 5: [4], 6: [8], 7: [8], 8: [0, 40] };
  const length = random.pick(own[type] ?? [1, 17, 300, 5_000]);
  const stream = type >= frames.ping ? 0 : random.pick([0, 1, 1, 1, 2, 2, 3, 4, 0xffff_ffff]);
  const frame = rawFrame(type, random.chance(0.05) ? 7 : stream, randomBytes(random, length));
  if (random.chance(0.1)) frame.writeUInt32BE(random.pick([0, 1, length + 7, 1 << 16, (1 << 16) + 1, 0xffff_ffff]), 0);
  return frame;
}
