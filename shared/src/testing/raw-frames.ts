/** Writes and reads frames as bytes, independently of the code that they test. */

interface RawFrame {
  readonly type: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function rawFrame(type: number, stream: number, payload: Buffer | string | readonly number[] = []): Buffer {
  const bytes = Buffer.from(payload as string);
  const head = Buffer.alloc(9);
  head.writeUInt32BE(bytes.length, 0);
  head.writeUInt8(type, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Reads frames. Throws if the bytes are not complete frames. */
export function rawFrames(bytes: Buffer): RawFrame[] {
  const found: RawFrame[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 9 + bytes.readUInt32BE(at);
    if (end > bytes.length) throw new Error("a frame is incomplete");
    found.push({
      type: bytes.readUInt8(at + 4),
      stream: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + 9, end),
    });
    at = end;
  }
  return found;
}
