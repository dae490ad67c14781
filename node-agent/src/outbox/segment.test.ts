import { describe, expect, it } from "vitest";
import { numberOf, usageRecord } from "../../test/outbox/usage-records.ts";
import { decodeRecord, encodeRecord } from "./record-codec.ts";
import {
  decodeHeader,
  encodeFrame,
  encodeHeader,
  headerBytes,
  parseFrames,
  segmentName,
  segmentNumber,
} from "./segment.ts";

const payloads = Array.from({ length: 6 }, (_, number) =>
  encodeRecord({ record: usageRecord(number), writtenAtMs: 1 }),
);
const frames = payloads.map(encodeFrame);
const whole = Buffer.concat([encodeHeader(7), ...frames]);

function numbers(bytes: Buffer): number[] {
  return parseFrames(bytes, headerBytes).frames.map(({ payload }) => numberOf(decodeRecord(payload)!.record));
}

describe("a record", () => {
  it("is decoded unchanged, with and without its optional fields", () => {
    const full = usageRecord(1, {
      reasoningTokens: 0,
      cachedTokens: 5,
      firstTokenMs: 12,
      attempt: 2,
      outcome: "broken",
      source: "counted",
    });
    for (const record of [full, usageRecord(2)])
      expect(decodeRecord(encodeRecord({ record, writtenAtMs: 99 }))).toEqual({ record, writtenAtMs: 99 });
  });

  it("of a newer version is not decoded", () => {
    expect(decodeRecord(Buffer.from("[3,1]"))).toBeUndefined();
  });

  it("that was written before routers signed is read, without a grant", () => {
    const { grant: _grant, tokensMax: _tokensMax, ...before } = usageRecord(3);
    const fields = JSON.parse(encodeRecord({ record: usageRecord(3), writtenAtMs: 99 }).toString()) as unknown[];
    const written = Buffer.from(JSON.stringify([1, ...fields.slice(1, -2)]));
    expect(decodeRecord(written)).toEqual({ record: { ...before, grant: "", tokensMax: 0 }, writtenAtMs: 99 });
  });
});

describe("a segment", () => {
  it("has its number in its name and in its header", () => {
    expect(segmentNumber(segmentName(7))).toBe(7);
    expect(decodeHeader(whole)).toBe(7);
    expect(segmentNumber("cursor")).toBeUndefined();
    for (let bit = 0; bit < headerBytes * 8; bit++) expect(decodeHeader(flip(whole, bit))).toBeUndefined();
  });

  it("that is cut anywhere contains every complete record [A5]", () => {
    let end = headerBytes;
    const ends = frames.map((frame) => (end += frame.length));
    for (let cut = headerBytes; cut <= whole.length; cut++)
      expect(numbers(whole.subarray(0, cut))).toEqual(
        [0, 1, 2, 3, 4, 5].slice(0, ends.filter((each) => each <= cut).length),
      );
  });

  it("loses one record to any flipped bit in it, and reports its bytes [A5]", () => {
    const start = headerBytes + frames[0]!.length + frames[1]!.length;
    const end = start + frames[2]!.length;
    for (let bit = start * 8; bit < end * 8; bit++) {
      const damaged = flip(whole, bit);
      expect(numbers(damaged)).toEqual([0, 1, 3, 4, 5]);
      expect(parseFrames(damaged, headerBytes)).toMatchObject({ damaged: [{ start, end }], end: whole.length });
    }
  });

  it("does not read a range of zeros as records", () => {
    const zeros = Buffer.concat([whole, Buffer.alloc(1_000)]);
    expect(parseFrames(zeros, headerBytes)).toMatchObject({ damaged: [], end: whole.length });
    expect(numbers(Buffer.concat([zeros, frames[0]!]))).toEqual([0, 1, 2, 3, 4, 5, 0]);
  });
});

function flip(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3]! ^= 1 << (bit & 7);
  return copy;
}
