/**
 * Parses JSON and keeps its numbers and the order of its names. `JSON.parse` rounds numbers and moves names that look
 * like indices to the front. Both are therefore marked with NUL, which no text of a request contains: `{"1": 1.0}` is
 * parsed as `{"\0001": "\0001.0"}`.
 */

const mark = "\0";
const [quote, backslash, minus, zero, nine] = [0x22, 0x5c, 0x2d, 0x30, 0x39];
/** Characters of a number besides digits. */
const numberSigns: ReadonlySet<number | undefined> = new Set(Buffer.from("+-.eE"));

/** Names and numbers are kept from this depth on, where schemas in `tools` and in `response_format` begin. */
const keptDepth = 4;
/** `JSON.parse` never rounds integers with fewer digits. */
const wholeDigits = 16;

/** Returns the offset of the last byte of the number at `at`, and adds the number to `kept` if it would change. */
export function scanNumber(bytes: Buffer, at: number, depth: number, kept: number[]): number {
  let end = at + 1;
  while (bytes[end]! >= zero && bytes[end]! <= nine) end++;
  const isWhole = !numberSigns.has(bytes[end]);
  if (isWhole && end - at < wholeDigits && bytes[at] !== minus) return end - 1;
  while ((bytes[end]! >= zero && bytes[end]! <= nine) || numberSigns.has(bytes[end])) end++;
  // Of the body's own members only whole numbers are kept, because a seed has 64 bits.
  if (depth >= keptDepth || (depth === 1 && end - at >= wholeDigits)) {
    const text = bytes.toString("latin1", at, end);
    if (depth === 1 ? /^-?\d{16,}$/.test(text) : String(Number(text)) !== text) kept.push(at, end);
  }
  return end - 1;
}

/** Adds a name that looks like an index to `kept`. `from` and `end` delimit its text, without the quotes. */
export function scanName(bytes: Buffer, from: number, end: number, depth: number, kept: number[]): void {
  const first = bytes[from]!;
  if (depth < keptDepth || first > backslash) return;
  const isEscaped = first === backslash;
  const digit = isEscaped ? (JSON.parse(bytes.toString("utf8", from - 1, end + 1)) as string).charCodeAt(0) : first;
  if (digit >= zero && digit <= nine) kept.push(from - 1, end + 1);
}

/** Parses valid JSON and marks the kept names and numbers. */
export function parseKept(bytes: Buffer, { kept }: { readonly kept: readonly number[] }): unknown {
  const parts: string[] = [];
  let copied = 0;
  for (let pair = 0; pair < kept.length; pair += 2) {
    const [from, end] = [kept[pair]!, kept[pair + 1]!];
    const isName = bytes[from] === quote;
    parts.push(bytes.toString("utf8", copied, isName ? from + 1 : from), isName ? "\\u0000" : '"\\u0000');
    parts.push(bytes.toString("utf8", isName ? from + 1 : from, end), isName ? "" : '"');
    copied = end;
  }
  parts.push(bytes.toString("utf8", copied));
  return JSON.parse(parts.join(""));
}

interface RawJson {
  readonly rawJSON: string;
}

/** TypeScript does not declare these functions of JSON yet. */
const json = JSON as unknown as { rawJSON(text: string): RawJson; isRawJSON(value: unknown): value is RawJson };

/** Returns a number that `JSON.stringify` writes as this text. */
export function rawJson(text: string): RawJson {
  return json.rawJSON(text);
}

export function isRawJson(value: unknown): value is RawJson {
  return json.isRawJSON(value);
}

/** Returns the text of a marked number, or undefined for other values. */
export function keptNumber(value: unknown): string | undefined {
  return typeof value === "string" && value.startsWith(mark) ? value.slice(1) : undefined;
}

/** Returns the number of a schema, which may be raw JSON. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return isRawJson(value) ? Number(value.rawJSON) : undefined;
}

export function plainName(name: string): string {
  return name.startsWith(mark) ? name.slice(1) : name;
}

/** Returns the member with this plain name, marked or not. Undefined if there is none. */
export function memberOf(value: object, name: string): unknown {
  if (Object.hasOwn(value, name)) return (value as Record<string, unknown>)[name];
  return (value as Record<string, unknown>)[mark + name];
}

/** Writes a value with its names in their original order. Kept numbers are raw JSON. */
export function writeKept(value: unknown): string {
  const text = JSON.stringify(value);
  return text.includes('"\\u0000') ? text.replaceAll('"\\u0000', '"') : text;
}
