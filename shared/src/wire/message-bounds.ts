/**
 * Checks the bounds of a protobuf message before it is decoded. One pass over the bytes counts the elements of each
 * field and makes no objects, so hostile bytes cost no more than their length. A table declares a protocol's bounds.
 */

/** The bounds of one kind of message. */
export interface MessageBounds {
  /** As in the .proto file. */
  readonly message: string;
  /** Fields by their numbers. A missing number belongs to a later version. */
  readonly fields: readonly (FieldBounds | undefined)[];
}

export interface FieldBounds {
  /** As in the .proto file. */
  readonly name: string;
  readonly number: number;
  /** How often the field may occur. 1 unless it is repeated. */
  readonly countMax: number;
  /** Maximum length of a text or bytes. Undefined if the field is a number or a message. */
  readonly bytesMax?: number;
  /** Undefined if the field is not a message. */
  readonly of?: MessageBounds;
}

export function message(name: string, ...fields: readonly FieldBounds[]): MessageBounds {
  const byNumber: (FieldBounds | undefined)[] = [];
  for (const field of fields) byNumber[field.number] = field;
  return { message: name, fields: byNumber };
}

export function number(at: number, name: string): FieldBounds {
  return { name, number: at, countMax: 1 };
}

/** Declares a text or bytes. */
export function text(at: number, name: string, bytesMax: number): FieldBounds {
  return { name, number: at, countMax: 1, bytesMax };
}

export function one(at: number, name: string, of: MessageBounds): FieldBounds {
  return { name, number: at, countMax: 1, of };
}

export function many(countMax: number, field: FieldBounds): FieldBounds {
  return { ...field, countMax };
}

/**
 * Maximum number of unknown fields in a message with all its parts. A later version may send new ones in each record.
 */
export const unknownMax = 32_768;

/** `elements`: number of all fields in all parts, which decides the cost of decoding. */
type Measured = { readonly elements: number } | { readonly mistake: string };

/** Checks a message. Never throws. A mistake names the field and its bound, without quoting the message. */
export function measureMessage(bytes: Uint8Array, bounds: MessageBounds): Measured {
  const walk = new Walk(bytes);
  try {
    walk.message(bounds, 0, bytes.length, 0);
  } catch (error) {
    if (error instanceof BoundExceeded) return { mistake: error.message };
    throw error;
  }
  return { elements: walk.elements };
}

class BoundExceeded extends Error {}

const malformed = "the message is not well-formed";
const [varint, eightBytes, delimited, fourBytes] = [0, 1, 2, 5];

class Walk {
  elements = 0;
  readonly #bytes: Uint8Array;
  #at = 0;
  #unknown = 0;
  /** Names of the fields around the current one. */
  readonly #path: string[] = [];
  /** Counts of each field, one list per depth. */
  readonly #counts: Uint32Array[] = [];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  message({ fields }: MessageBounds, from: number, end: number, depth: number): void {
    const counts = this.#countsAt(depth, fields.length);
    this.#at = from;
    while (this.#at < end) {
      const tag = this.#uint32();
      const field = fields[tag >>> 3];
      this.elements++;
      // The decoder skips a field of another type like an unknown one.
      if (!field || (isDelimited(field) && (tag & 7) !== delimited)) this.#skipUnknown(tag, end);
      else {
        if (++counts[field.number]! > field.countMax) this.#exceeds(field, amountOf(field));
        if (isDelimited(field)) this.#delimited(field, end, depth);
        else this.#skip(tag, end);
      }
    }
    if (this.#at !== end) throw new BoundExceeded(malformed);
  }

  #delimited(field: FieldBounds, end: number, depth: number): void {
    const length = this.#uint32();
    const from = this.#at;
    if (length > end - from) throw new BoundExceeded(malformed);
    if (!field.of) {
      if (length > field.bytesMax!) this.#exceeds(field, `is longer than ${field.bytesMax} bytes`);
      this.#at = from + length;
      return;
    }
    this.#path.push(field.name);
    this.message(field.of, from, from + length, depth + 1);
    this.#path.pop();
  }

  #exceeds({ name }: FieldBounds, what: string): never {
    throw new BoundExceeded(`${[...this.#path, name].join(".")} ${what}`);
  }

  #skipUnknown(tag: number, end: number): void {
    if (++this.#unknown > unknownMax) throw new BoundExceeded(`the message has more than ${unknownMax} unknown fields`);
    this.#skip(tag, end);
  }

  #skip(tag: number, end: number): void {
    const type = tag & 7;
    if (tag >>> 3 === 0) throw new BoundExceeded(malformed);
    if (type === varint) this.#skipVarint();
    else if (type === eightBytes) this.#at += 8;
    else if (type === fourBytes) this.#at += 4;
    else if (type === delimited) this.#at = this.#uint32() + this.#at;
    // Groups, which proto3 does not have, and types that do not exist.
    else throw new BoundExceeded(malformed);
    if (this.#at > end) throw new BoundExceeded(malformed);
  }

  #skipVarint(): void {
    for (let length = 1; length <= 10; length++) if (this.#byte() < 0x80) return;
    throw new BoundExceeded(malformed);
  }

  /** Reads a tag or a length. Encoders write at most five bytes, and decoders disagree about longer ones. */
  #uint32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffff_ffff) break;
        return value;
      }
    }
    throw new BoundExceeded(malformed);
  }

  /** Checks every read against the end of the bytes, at every depth. */
  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new BoundExceeded(malformed);
    return byte;
  }

  #countsAt(depth: number, fields: number): Uint32Array {
    let counts = this.#counts[depth];
    if (!counts || counts.length < fields) this.#counts[depth] = counts = new Uint32Array(Math.max(64, fields));
    else counts.fill(0, 0, fields);
    return counts;
  }
}

function isDelimited({ of, bytesMax }: FieldBounds): boolean {
  return of !== undefined || bytesMax !== undefined;
}

function amountOf({ countMax, of }: FieldBounds): string {
  if (countMax === 1) return "occurs twice";
  return `has more than ${countMax} ${of ? "elements" : "texts"}`;
}

/** A decoded message with its number of elements, or the reason why it was not decoded. */
export type Received<Message> =
  | (Message & { readonly elements: number; readonly mistake?: undefined })
  | { readonly mistake: string; readonly message?: undefined; readonly elements: number };

/** Returns a function that decodes messages within the bounds. The function never throws. */
export function boundedDecoder<Message extends object>(decode: (bytes: Buffer) => Message, bounds: MessageBounds) {
  return (bytes: Buffer): Received<Message> => {
    const measured = measureMessage(bytes, bounds);
    if ("mistake" in measured) return { ...measured, elements: 1 };
    try {
      return { ...decode(bytes), ...measured };
    } catch {
      return { mistake: malformed, elements: measured.elements };
    }
  };
}
