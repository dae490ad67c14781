/**
 * Reads JSON more strictly than `JSON.parse`: valid UTF-8, bounded depth and number of values, no duplicate member, no
 * `__proto__`, no lone surrogate, no NUL. If the caller accepts broken texts, texts may contain NUL and lone
 * surrogates. Member names never may. The parsed value reveals duplicate members, and one pass over the bytes reveals
 * all other problems. A problem's text never quotes the input.
 */
import { isUtf8 } from "node:buffer";
import { scanName, scanNumber } from "./kept-json.ts";

export const depthMax = 64;
/**
 * The most members and items in a body, at all depths together. They determine the cost of reading, up to 1 µs each,
 * far more than the bytes do. A megabyte of text takes 2 ms, a megabyte of nested arrays took 80 ms.
 */
export const valuesMax = 32_768;
/**
 * Limits for reading on the main thread, which takes at most 2 ms. A request with 2,048 texts for embeddings fits.
 * Worker threads read larger bodies.
 */
export const lightBytesMax = 128 << 10;
export const lightValuesMax = 4_096;
/**
 * The returned value contains only the first bytes of a longer string, because checking an image does not require a
 * copy of it.
 */
const longStringBytes = 64 << 10;
export const keptStringBytes = 8 << 10;

type JsonResult = { readonly value: unknown } | { readonly problem: string };

/**
 * `scan` is the result of `scanJson` for these bytes, if it is known already. `texts` decides whether broken texts are
 * accepted.
 */
export function readJson(
  bytes: Buffer,
  scan: JsonScan = scanJson(bytes),
  texts: "sound" | "any" = "sound",
): JsonResult {
  if ("problem" in scan) return scan;
  if (scan.brokenText !== undefined && texts === "sound") return { problem: scan.brokenText };
  let value: unknown;
  try {
    value = JSON.parse(scan.longStrings.length === 0 ? bytes.toString() : withoutLongStrings(bytes, scan.longStrings));
  } catch {
    return { problem: notJson };
  }
  const members = countMembers(value);
  if (members === undefined) return { problem: "The body has a member that is named __proto__." };
  if (members !== scan.members) {
    // Names are strings, too, and very long names were cut.
    const twice = scan.longStrings.length === 0 ? "" : ", or two very long names that begin alike";
    return { problem: `The body has an object with the same member twice${twice}.` };
  }
  return { value };
}

export const notJson = "The body is not valid JSON.";

/** Scans a body that the main thread may read. Returns undefined if a worker thread should read it. */
export function scanLight(bytes: Buffer): JsonScan | undefined {
  if (bytes.length > lightBytesMax) return undefined;
  const scan = scanJson(bytes);
  return "problem" in scan || scan.values <= lightValuesMax ? scan : undefined;
}

export type JsonScan = Scan | { readonly problem: string };

interface Scan {
  readonly members: number;
  /** Number of items and members, plus one for each empty array or object. */
  readonly values: number;
  /** Pairs of offsets: the first byte, and the byte after the last, without the quotes. */
  readonly longStrings: readonly number[];
  /** The problem of the first text with NUL or half of a surrogate pair. Member names do not count. */
  readonly brokenText: string | undefined;
  /** Pairs of offsets: names and numbers that `JSON.parse` would change, at depths where a body may contain schemas. */
  readonly kept: readonly number[];
}

const [minus, zero, nine] = [0x2d, 0x30, 0x39];
const [quote, backslash, comma, colon, openBrace, closeBrace, openBracket, closeBracket] = [
  0x22, 0x5c, 0x2c, 0x3a, 0x7b, 0x7d, 0x5b, 0x5d,
];

/**
 * Checks the bytes before any parser reads them, because some inputs could crash a parser, especially the parser of
 * llama.cpp.
 */
export function scanJson(bytes: Buffer, limit = valuesMax): JsonScan {
  if (!isUtf8(bytes)) return { problem: "The body is not valid UTF-8." };
  const longStrings: number[] = [];
  let depth = 0;
  let members = 0;
  let values = 0;
  let brokenText: string | undefined;
  const kept: number[] = [];
  /** Start and end of the last string. -1 before the first string. */
  let [from, to] = [-1, -1];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === quote) {
      let end = endOfString(bytes, at + 1);
      if (end < 0) {
        const problem = stringProblems[end]!;
        end = end === syntax ? syntax : endOfBrokenString(bytes, at + 1);
        if (end < 0) return { problem: notJson };
        if (isName(bytes, end)) return { problem };
        brokenText ??= problem;
      }
      from = at + 1;
      if (end - at > longStringBytes) longStrings.push(at + 1, end);
      at = end;
      to = end;
    } else if (byte === openBrace || byte === openBracket) {
      if (++depth > depthMax) return { problem: `The body is nested deeper than ${depthMax} levels.` };
      if (++values > limit) return tooMany(limit);
    } else if (byte === closeBrace || byte === closeBracket) depth--;
    else if (byte === colon) {
      members++;
      if (from >= 0) scanName(bytes, from, to, depth, kept);
    } else if (byte === comma) {
      if (++values > limit) return tooMany(limit);
    } else if (byte === minus || (byte >= zero && byte <= nine)) at = scanNumber(bytes, at, depth, kept);
  }
  return { members, values, longStrings, brokenText, kept };
}

function tooMany(limit: number): JsonScan {
  return { problem: `The body has more than ${limit} values (members of objects and items of arrays).` };
}

const [syntax, nul, loneSurrogate] = [-1, -2, -3];
const stringProblems: Readonly<Record<number, string>> = {
  [syntax]: notJson,
  [nul]: "The body has a NUL character in a string.",
  [loneSurrogate]: "The body has half of a surrogate pair in a string.",
};

/** Returns the offset of the string's closing quote, or a negative key of `stringProblems`. */
function endOfString(bytes: Buffer, from: number): number {
  let pendingHigh = false;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte !== backslash) {
      if (pendingHigh) return loneSurrogate;
      if (byte === quote) return at;
      if (byte < 0x20) return syntax;
      continue;
    }
    const escaped = bytes[++at]!;
    if (escaped !== 0x75) {
      if (pendingHigh) return loneSurrogate;
      if (!simpleEscapes.has(escaped)) return syntax;
      continue;
    }
    const unit = hex4(bytes, at + 1);
    at += 4;
    if (unit < 0) return syntax;
    if (unit === 0) return nul;
    const isLow = unit >= 0xdc00 && unit <= 0xdfff;
    if (isLow !== pendingHigh) return loneSurrogate;
    pendingHigh = unit >= 0xd800 && unit <= 0xdbff;
  }
  return syntax;
}

/**
 * Returns the offset of the closing quote of a string with NUL or half of a surrogate pair. Returns `syntax` if the
 * string has another problem, too.
 */
function endOfBrokenString(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === quote) return at;
    if (byte < 0x20) return syntax;
    if (byte !== backslash) continue;
    const escaped = bytes[++at]!;
    if (escaped !== 0x75) {
      if (!simpleEscapes.has(escaped)) return syntax;
    } else if (hex4(bytes, at + 1) < 0) return syntax;
    else at += 4;
  }
  return syntax;
}

function isName(bytes: Buffer, end: number): boolean {
  let at = end + 1;
  while (bytes[at] === 0x20 || (bytes[at]! >= 0x09 && bytes[at]! <= 0x0d)) at++;
  return bytes[at] === colon;
}

/**
 * Writes U+FFFD over each NUL and each half of a surrogate pair, in place, because all these escapes have the same
 * length.
 */
export function mendTexts(bytes: Buffer): void {
  for (let at = bytes.indexOf(backslash); at >= 0; at = bytes.indexOf(backslash, at)) {
    const unit = bytes[at + 1] === 0x75 ? hex4(bytes, at + 2) : -1;
    if (isSurrogate(unit, 0xd800) && bytes[at + 6] === backslash && bytes[at + 7] === 0x75) {
      if (isSurrogate(hex4(bytes, at + 8), 0xdc00)) {
        at += 12;
        continue;
      }
    }
    if (unit === 0 || isSurrogate(unit, 0xd800) || isSurrogate(unit, 0xdc00)) bytes.write("\\ufffd", at, "latin1");
    at += unit < 0 ? 2 : 6;
  }
}

function isSurrogate(unit: number, first: 0xd800 | 0xdc00): boolean {
  return unit >= first && unit < first + 0x400;
}

const simpleEscapes: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

function hex4(bytes: Buffer, from: number): number {
  let value = 0;
  for (let at = from; at < from + 4; at++) {
    const digit = hexDigits[bytes[at] ?? 0]!;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

const hexDigits = Int8Array.from({ length: 256 }, (_, byte) =>
  "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase()),
);

/** Returns the text with each long string cut to about `keptStringBytes`, never inside a character or an escape. */
function withoutLongStrings(bytes: Buffer, longStrings: readonly number[]): string {
  const parts: string[] = [];
  let copied = 0;
  for (let pair = 0; pair < longStrings.length; pair += 2) {
    let cut = longStrings[pair]!;
    const keepTo = cut + keptStringBytes;
    while (cut < keepTo) cut += characterBytes(bytes, cut);
    parts.push(bytes.toString("utf8", copied, cut));
    copied = longStrings[pair + 1]!;
  }
  parts.push(bytes.toString("utf8", copied));
  return parts.join("");
}

function characterBytes(bytes: Buffer, at: number): number {
  const byte = bytes[at]!;
  if (byte === backslash) return bytes[at + 1] === 0x75 ? 6 : 2;
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

/** Counts the members of all objects in `value`. Returns undefined if a member is named `__proto__`. */
function countMembers(value: unknown): number | undefined {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item !== "object" || item === null) continue;
      const within = countMembers(item);
      if (within === undefined) return undefined;
      count += within;
    }
    return count;
  }
  for (const name in value) {
    if (name === "__proto__") return undefined;
    const within = countMembers((value as Record<string, unknown>)[name]);
    if (within === undefined) return undefined;
    count += within + 1;
  }
  return count;
}
