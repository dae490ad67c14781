/**
 * Parses an engine's Server-Sent Events. The convention uses only `data:` lines and comments. Other fields of the
 * format and events without data are ignored. The parser works on bytes, because a chunk may end inside a code point.
 *
 * It also reads what some engines and proxies send against the format, if it has only one meaning:
 *
 * - Proxies that copy lines drop the empty ones. A `data:` line after a whole JSON object begins another event, because
 *   no JSON text continues behind its end.
 * - The last event lacks its empty line, or its line end. It counts if it is whole.
 * - llama-server to September 2025 sends errors in a field `error`.
 */
import { parseJson } from "../json.ts";

export type SseEvent =
  | { readonly kind: "data"; readonly data: string }
  /** A comment. It only shows that the engine is alive. */
  | { readonly kind: "comment" }
  /** An unexpected line, invalid UTF-8, or an event over the limit. It ends the stream. */
  | { readonly kind: "malformed"; readonly reason: string };

/** The largest accepted event. An engine's embedding or tool call is far smaller. */
const sseEventBytesMax = 8 << 20;

const lineFeed = 10;
const carriageReturn = 13;

export class SseParser {
  readonly #eventBytesMax: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #rest: Buffer[] = [];
  #restBytes = 0;
  #data: string | undefined;
  /** Whether `#data` has one line. */
  #isOneLine = false;
  /** The last chunk ended with a carriage return. A line feed at the beginning of the next chunk belongs to it. */
  #isBehindCr = false;

  constructor(eventBytesMax = sseEventBytesMax) {
    this.#eventBytesMax = eventBytesMax;
  }

  /** Takes the next bytes and returns the events that they complete, in order. */
  push(chunk: Buffer): SseEvent[] {
    const events: SseEvent[] = [];
    let start = this.#isBehindCr && chunk[0] === lineFeed ? 1 : 0;
    if (chunk.length > 0) this.#isBehindCr = false;
    let feed = chunk.indexOf(lineFeed, start);
    let carriage = chunk.indexOf(carriageReturn, start);
    while (feed >= 0 || carriage >= 0) {
      const end = Math.min(feed < 0 ? Infinity : feed, carriage < 0 ? Infinity : carriage);
      this.#line(this.#takeLine(chunk.subarray(start, end)), events);
      start = end + 1;
      if (end === carriage) {
        if (chunk[start] === lineFeed) start++;
        else this.#isBehindCr = start === chunk.length;
        carriage = chunk.indexOf(carriageReturn, start);
      }
      if (feed >= 0 && feed < start) feed = chunk.indexOf(lineFeed, start);
    }
    if (start < chunk.length) {
      this.#rest.push(chunk.subarray(start));
      this.#restBytes += chunk.length - start;
      if (this.#restBytes > this.#eventBytesMax) events.push({ kind: "malformed", reason: "event too large" });
    }
    return events;
  }

  /** Returns the last event at the end of the bytes, unless its end is missing. Call it only once. */
  end(): SseEvent[] {
    const events: SseEvent[] = [];
    if (this.#restBytes > 0) this.#line(this.#takeLine(Buffer.alloc(0)), events);
    const whole = this.#data !== undefined && isWhole(this.#data) ? [{ kind: "data", data: this.#data } as const] : [];
    return [...events.filter(({ kind }) => kind === "data"), ...whole];
  }

  /** Whether the bytes so far end in the middle of an event. */
  get unfinished(): boolean {
    return this.#restBytes > 0 || this.#data !== undefined;
  }

  #takeLine(tail: Buffer): Buffer {
    if (this.#restBytes === 0) return tail;
    const line = Buffer.concat([...this.#rest, tail]);
    this.#rest = [];
    this.#restBytes = 0;
    return line;
  }

  #line(bytes: Buffer, events: SseEvent[]): void {
    if (bytes.length === 0) {
      if (this.#data) events.push({ kind: "data", data: this.#data });
      this.#data = undefined;
      return;
    }
    if (bytes[0] === 58) {
      events.push({ kind: "comment" });
      return;
    }
    let text: string;
    try {
      text = this.#decoder.decode(bytes);
    } catch {
      events.push({ kind: "malformed", reason: "invalid UTF-8" });
      return;
    }
    const error = text.startsWith("error:") ? text.slice(6) : undefined;
    if (error !== undefined && isWhole(error)) return this.#add(`{"error":${error}}`, events);
    if (!text.startsWith("data:")) {
      if (!otherFields.test(text)) events.push({ kind: "malformed", reason: "a line that is no field of an event" });
      return;
    }
    this.#add(text.slice(text[5] === " " ? 6 : 5), events);
  }

  #add(value: string, events: SseEvent[]): void {
    if (this.#data !== undefined && this.#isOneLine && isWhole(this.#data)) {
      events.push({ kind: "data", data: this.#data });
      this.#data = undefined;
    }
    this.#isOneLine = this.#data === undefined;
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    if (this.#data.length > this.#eventBytesMax) events.push({ kind: "malformed", reason: "event too large" });
  }
}

/** Fields without output. A field without a colon is empty. */
const otherFields = /^(?:event|id|retry)(?::|$)|^data$/;

/** Returns whether no further line can belong to the data: it is a JSON object, or the terminator. */
function isWhole(data: string): boolean {
  const text = data.trim();
  return text === "[DONE]" || (text.startsWith("{") && text.endsWith("}") && parseJson(text) !== undefined);
}
