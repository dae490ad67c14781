/** Withholds the last received bytes of an answer, so that a cut answer never looks complete. */

/** A longer event is passed on in pieces. If it is cut, the client gets a part of it before the error event. */
const eventBytesMax = 256 << 10;
const newline = 10;
const eventEnd = Buffer.from("\n\n");

/** Withholds an unfinished event of a stream. Nodes write whole events, and only long events arrive in pieces. */
export class UnfinishedEvent {
  /** Doubled when it is full, so that an event in many small pieces is not copied with each piece. */
  #held = Buffer.alloc(0);
  #length = 0;
  /** True if a part of an unfinished event was passed on. */
  torn = false;

  get rest(): Buffer | undefined {
    return this.#length === 0 ? undefined : this.#held.subarray(0, this.#length);
  }

  /** Adds a chunk and returns the bytes that may be passed on. */
  push(chunk: Buffer): Buffer | undefined {
    const cut = this.#endOfLastEvent(chunk);
    if (cut === 0 && this.#length + chunk.length <= eventBytesMax) {
      this.#hold(chunk);
      return undefined;
    }
    this.torn = cut === 0;
    const passed = cut === 0 ? chunk : chunk.subarray(0, cut);
    const ready = this.rest ? Buffer.concat([this.rest, passed]) : passed;
    this.#length = 0;
    if (passed.length < chunk.length) this.#hold(chunk.subarray(cut));
    return ready;
  }

  /** Returns how many bytes of the chunk belong to finished events. */
  #endOfLastEvent(chunk: Buffer): number {
    const last = chunk.length - 1;
    if (chunk[last] === newline && chunk[last - 1] === newline) return chunk.length;
    const end = chunk.lastIndexOf(eventEnd);
    if (end >= 0) return end + eventEnd.length;
    return chunk[0] === newline && this.#length > 0 && this.#held[this.#length - 1] === newline ? 1 : 0;
  }

  #hold(bytes: Buffer): void {
    const length = this.#length + bytes.length;
    if (length > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#held.length));
      this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    bytes.copy(this.#held, this.#length);
    this.#length = length;
  }
}

/** Withholds the last piece of an answer. */
export class LastPiece {
  rest: Buffer | undefined;
  readonly torn = false;

  push(chunk: Buffer): Buffer | undefined {
    const before = this.rest;
    this.rest = chunk;
    return before;
  }
}
