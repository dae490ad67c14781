/** Tests the link's bounds against the .proto file, against hostile bytes, and against the cost of decoding. */
import { join } from "node:path";
import { loadSync } from "@grpc/proto-loader";
import { describe, expect, test } from "vitest";
import { LinkRequest, LinkResponse } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { createRandom, type Random } from "@weiche/shared/random.ts";
import { linkRequestBounds, linkResponseBounds } from "@weiche/shared/wire/link-bounds.ts";
import { boundedDecoder, measureMessage, unknownMax } from "@weiche/shared/wire/message-bounds.ts";
import type { FieldBounds, MessageBounds } from "@weiche/shared/wire/message-bounds.ts";

const roots = [linkRequestBounds, linkResponseBounds];
/** This many bytes of empty elements exceed the count limit of every repeated field. */
const fillBytes = 64 << 10;
/** Decoding this many elements takes about 30 ms and 20 MB. */
const elementsMax = 200_000;

function fieldsOf({ fields }: MessageBounds): readonly FieldBounds[] {
  return fields.filter((field) => field !== undefined);
}

/** Yields every field that a message within the root can have, with the fields around it. */
function* pathsOf(bounds: MessageBounds, around: readonly FieldBounds[] = []): Generator<readonly FieldBounds[]> {
  for (const field of fieldsOf(bounds)) {
    yield [...around, field];
    if (field.of) yield* pathsOf(field.of, [...around, field]);
  }
}

interface WireField {
  readonly name: string;
  readonly number: number;
  readonly label: string;
  readonly type: string;
  readonly typeName: string;
}

/** Returns the fields of this message and of all messages in it, as the .proto file declares them, by message name. */
function declared(name: string, into = new Map<string, readonly string[]>()): ReadonlyMap<string, readonly string[]> {
  const { type } = protocol[`weiche.node.v1.${name}`] as unknown as { type: { field: readonly WireField[] } };
  into.set(name, type.field.map((field) => `${field.number} ${field.name} ${field.label} ${kindOf(field)}`).sort());
  for (const field of type.field)
    if (field.type === "TYPE_MESSAGE" && !into.has(kindOf(field))) declared(kindOf(field), into);
  return into;
}

const protocol = loadSync(join(import.meta.dirname, "../../../proto/weiche/node/v1/node_control.proto"), {
  keepCase: true,
});

function kindOf({ type, typeName }: WireField): string {
  if (type === "TYPE_MESSAGE") return typeName.split(".").at(-1)!;
  return type === "TYPE_STRING" || type === "TYPE_BYTES" ? "bytes" : "number";
}

function bounded(bounds: MessageBounds, into = new Map<string, readonly string[]>()) {
  const lines = fieldsOf(bounds).map(({ number, name, countMax, of, bytesMax }) => {
    const kind = of?.message ?? (bytesMax === undefined ? "number" : "bytes");
    return `${number} ${name} LABEL_${countMax > 1 ? "REPEATED" : "OPTIONAL"} ${kind}`;
  });
  into.set(bounds.message, lines.sort());
  for (const { of } of fieldsOf(bounds)) if (of) bounded(of, into);
  return into;
}

test.each(roots)(
  "every field of $message in the .proto file has a bound of its kind, and no other field has one [D10]",
  (root) => {
    expect(bounded(root)).toEqual(declared(root.message));
  },
);

/** Returns the largest number of elements in a message within the bounds. */
function mostElements(bounds: MessageBounds): number {
  return fieldsOf(bounds).reduce((sum, { countMax, of }) => sum + countMax * (1 + (of ? mostElements(of) : 0)), 0);
}

test.each(roots)("no field of $message can be filled with more elements than are cheap to decode [D10]", (root) => {
  for (const field of fieldsOf(root)) expect(field.of ? mostElements(field.of) : 1).toBeLessThan(elementsMax);
});

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))];
}

/** Wraps a content in the field. */
function wrapped(content: Buffer, { number }: FieldBounds): Buffer {
  return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(content.length)]), content]);
}

/** Repeats an empty field until the bytes are full. */
function repeated({ number, of, bytesMax }: Pick<FieldBounds, "number" | "of" | "bytesMax">, bytes: number): Buffer {
  const empty = Buffer.from([...varint(number * 8 + (of || bytesMax !== undefined ? 2 : 0)), 0]);
  return Buffer.alloc(empty.length * Math.floor(bytes / empty.length), empty);
}

describe("a message full of one field is refused before decoding, with the field and its bound in the mistake:", () => {
  test.each(roots.map((root) => [root.message, root] as const))("every field of %s [D10]", (_name, root) => {
    for (const path of pathsOf(root)) {
      const field = path.at(-1)!;
      const outer = path.slice(0, -1).toReversed();
      const name = path.map((each) => each.name).join(".");
      const within = (content: Buffer) => measureMessage(outer.reduce(wrapped, content), root);
      const amount = field.countMax === 1 ? "occurs twice" : `has more than ${field.countMax}`;
      const filled = within(repeated(field, fillBytes));
      expect(filled).toEqual({ mistake: expect.stringContaining(`${name} ${amount}`) as string });
      if (field.bytesMax === undefined) continue;
      const long = within(wrapped(Buffer.alloc(field.bytesMax + 1), field));
      expect(long).toEqual({ mistake: `${name} is longer than ${field.bytesMax} bytes` });
      expect(within(wrapped(Buffer.alloc(field.bytesMax), field))).toHaveProperty("elements");
    }
  });
});

test.each(roots)("a bounded number of fields that $message does not have is ignored", (root) => {
  const some = repeated({ number: 1_000 }, 3 * unknownMax);
  expect(measureMessage(some, root)).toEqual({ elements: unknownMax });
  expect(measureMessage(Buffer.concat([some, repeated({ number: 1_000 }, 3)]), root)).toEqual({
    mistake: `the message has more than ${unknownMax} unknown fields`,
  });
});

/** Returns a message of the table with random counts, sometimes with a wrong byte. */
function randomMessage(random: Random, bounds: MessageBounds): Buffer {
  const pieces = fieldsOf(bounds).flatMap((field) =>
    Array.from({ length: random.chance(0.5) ? 0 : 1 + random.below(Math.min(3, field.countMax)) }, () => {
      if (field.of) return wrapped(randomMessage(random, field.of), field);
      if (field.bytesMax !== undefined) return wrapped(Buffer.alloc(random.below(8), 0x61), field);
      return Buffer.from([...varint(field.number * 8), ...varint(random.below(2 ** 31))]);
    }),
  );
  const bytes = Buffer.concat(pieces);
  if (bytes.length > 0 && random.chance(0.05)) bytes[random.below(bytes.length)] = random.below(256);
  return random.chance(0.02) ? bytes.subarray(0, random.below(bytes.length + 1)) : bytes;
}

/** Counts the messages and list items that decoding has made. */
function made(value: unknown): number {
  if (typeof value !== "object" || value === null || Buffer.isBuffer(value)) return 0;
  return Object.values(value).reduce<number>((sum, each) => sum + made(each), 1);
}

test("the decoder never throws and makes no more objects than it counted, whatever the bytes are [D10]", () => {
  const random = createRandom(33);
  const decode = {
    LinkRequest: boundedDecoder((bytes) => LinkRequest.decode(bytes), linkRequestBounds),
    LinkResponse: boundedDecoder((bytes) => LinkResponse.decode(bytes), linkResponseBounds),
  };
  const seen = { taken: 0, refused: 0, costly: 0 };
  for (let count = 0; count < 1_500; count++) {
    const root = random.pick(roots);
    const received = decode[root.message as keyof typeof decode](randomMessage(random, root));
    if (received.mistake === undefined) seen.taken++;
    else seen.refused++;
    // A list is one object more than its items, and messages are nested.
    if (received.mistake === undefined && made(received.message) > 6 * received.elements + 2) seen.costly++;
  }
  expect(seen.costly).toBe(0);
  expect(seen.taken).toBeGreaterThan(150);
  expect(seen.refused).toBeGreaterThan(150);
});
