/**
 * Computes the length of a GGUF file from its header and table of tensors, because a cut-off download looks complete
 * until an engine loads it. Reads only header and table. Format: `docs/gguf.md` of ggml-org/ggml.
 */
import { readSync } from "node:fs";

/** The file ends within its header or table, or these contain impossible values. */
export class GgufError extends Error {}

/** Returns the size that the file must have. Throws a `GgufError` with the reason, such as `is not a GGUF file`. */
export function ggufBytesNeeded(descriptor: number): number {
  const reader = new Reader(descriptor);
  if (reader.bytes(4).toString("latin1") !== "GGUF") throw new GgufError("is not a GGUF file");
  const version = reader.u32();
  if (version !== 2 && version !== 3)
    throw new GgufError(`is GGUF of version ${version}, but only 2 and 3 can be read`);
  const tensors = reader.count();
  const alignment = readAlignment(reader) ?? 32;
  let end = 0;
  for (let tensor = 0; tensor < tensors; tensor++) end = Math.max(end, tensorEnd(reader));
  return Math.ceil(reader.position / alignment) * alignment + end;
}

/** Skips all metadata. Returns only the alignment of the tensors' data. */
function readAlignment(reader: Reader): number | undefined {
  let alignment: number | undefined;
  for (let left = reader.count(); left > 0; left--) {
    const key = reader.text();
    const type = reader.u32();
    if (key === "general.alignment" && type === uint32) alignment = reader.u32();
    else skipValue(reader, type);
  }
  return alignment;
}

/** Returns the end of the tensor's data, counted from the start of all data. */
function tensorEnd(reader: Reader): number {
  reader.text();
  let elements = 1;
  for (let dimensions = reader.u32(); dimensions > 0; dimensions--) elements *= reader.count();
  const type = reader.u32();
  const offset = reader.count();
  // For a type that is not in the table, only the start is known.
  const [blockElements, blockBytes] = tensorTypes[type] ?? [Infinity, 0];
  return offset + Math.ceil(elements / blockElements) * blockBytes;
}

const uint32 = 4;
const textType = 8;
const arrayType = 9;
/** Bytes of a metadata value by its type: 8 to 64 bit integers, floats, booleans. */
const valueBytes: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

function skipValue(reader: Reader, type: number): void {
  if (type === textType) return reader.skip(reader.count());
  if (type === arrayType) {
    const of = reader.u32();
    const length = reader.count();
    const bytes = valueBytes[of];
    if (bytes !== undefined) return reader.skip(length * bytes);
    for (let item = 0; item < length; item++) skipValue(reader, of);
    return;
  }
  const bytes = valueBytes[type];
  if (bytes === undefined) throw new GgufError(`is damaged: its metadata has a value of the unknown type ${type}`);
  reader.skip(bytes);
}

/** Elements and bytes of a block, by tensor type. */
const tensorTypes: Readonly<Record<number, readonly [elements: number, bytes: number]>> = {
  ...{ 0: [1, 4], 1: [1, 2], 30: [1, 2], 24: [1, 1], 25: [1, 2], 26: [1, 4], 27: [1, 8], 28: [1, 8] },
  ...{ 2: [32, 18], 3: [32, 20], 6: [32, 22], 7: [32, 24], 8: [32, 34], 9: [32, 36], 20: [32, 18], 39: [32, 17] },
  ...{ 10: [256, 84], 11: [256, 110], 12: [256, 144], 13: [256, 176], 14: [256, 210], 15: [256, 292] },
  ...{ 16: [256, 66], 17: [256, 74], 18: [256, 98], 19: [256, 50], 21: [256, 110], 22: [256, 82] },
  ...{ 23: [256, 136], 29: [256, 56], 34: [256, 54], 35: [256, 66] },
};

const chunkBytes = 1 << 20;
/** Bounds, because a damaged file may contain any number. */
const textBytesMax = 1 << 16;

class Reader {
  position = 0;
  readonly #descriptor: number;
  #chunk: Buffer = Buffer.alloc(0);
  #chunkAt = 0;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  bytes(length: number): Buffer {
    const at = this.position - this.#chunkAt;
    if (at < 0 || at + length > this.#chunk.length) {
      const chunk = Buffer.alloc(Math.max(length, chunkBytes));
      this.#chunk = chunk.subarray(0, readSync(this.#descriptor, chunk, 0, chunk.length, this.position));
      this.#chunkAt = this.position;
      if (this.#chunk.length < length) throw new GgufError("is cut off within its header");
    }
    const from = this.position - this.#chunkAt;
    this.position += length;
    return this.#chunk.subarray(from, from + length);
  }

  skip(length: number): void {
    this.position += length;
  }

  u32(): number {
    return this.bytes(4).readUInt32LE();
  }

  count(): number {
    const value = Number(this.bytes(8).readBigUInt64LE());
    if (!Number.isSafeInteger(value)) throw new GgufError("is damaged: its header has an impossible number");
    return value;
  }

  text(): string {
    const length = this.count();
    if (length > textBytesMax) throw new GgufError("is damaged: its header has a name of impossible length");
    return this.bytes(length).toString("utf8");
  }
}
