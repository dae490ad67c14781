/** What of an answer has come and must wait, so that a cut answer never looks whole. */

/** A longer event is passed on in pieces; if it is cut, the client sees the stump of it before the error event. */
const eventBytesMax = 256 << 10;
const eventEnd = Buffer.from("\n\n");

/** What has come of an event that is not finished. A node writes whole events; only a long one comes in pieces. */
export class UnfinishedEvent {
  rest: Buffer | undefined;
  /** Whether a part of an unfinished event was passed on. */
  torn = false;

  /** Returns what may be passed on. */
  push(chunk: Buffer): Buffer | undefined {
    const bytes = this.rest ? Buffer.concat([this.rest, chunk]) : chunk;
    const last = bytes.length - 1;
    const cut = bytes[last] === 10 && bytes[last - 1] === 10 ? bytes.length : bytes.lastIndexOf(eventEnd) + 2;
    if (cut < 2 && bytes.length <= eventBytesMax) {
      this.rest = bytes;
      return undefined;
    }
    this.torn = cut < 2;
    this.rest = cut < 2 || cut === bytes.length ? undefined : bytes.subarray(cut);
    return this.rest ? bytes.subarray(0, cut) : bytes;
  }
}

/** The piece that came last. */
export class LastPiece {
  rest: Buffer | undefined;
  readonly torn = false;

  push(chunk: Buffer): Buffer | undefined {
    const before = this.rest;
    this.rest = chunk;
    return before;
  }
}
