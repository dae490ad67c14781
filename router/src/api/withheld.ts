/** Holds back the received end of an answer, so that a cut answer never looks complete. */

/** A longer event is passed on in pieces; if it is cut, the client sees a part of it before the error event. */
const eventBytesMax = 256 << 10;
const eventEnd = Buffer.from("\n\n");

/** Holds back an unfinished event of a stream. Nodes write whole events; only long ones come in pieces. */
export class UnfinishedEvent {
  rest: Buffer | undefined;
  /** Whether a part of an unfinished event was passed on. */
  torn = false;

  /** Returns the bytes that may be passed on. */
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

/** Holds back the last piece. */
export class LastPiece {
  rest: Buffer | undefined;
  readonly torn = false;

  push(chunk: Buffer): Buffer | undefined {
    const before = this.rest;
    this.rest = chunk;
    return before;
  }
}
