/**
 * Collects the pieces of a body by copying them. A kept piece costs some hundred bytes and the whole buffer of its socket
 * read: a megabyte in pieces of one byte held 200 MB.
 */

/** Memory for the beginning of an announced body. V8 counts all of it: 20 MB at once make it collect its whole heap. */
const firstBytesMax = 1 << 20;

export class CollectedBody {
  bytes = 0;
  readonly #expected: number | undefined;
  /** The first piece while it is the only one. It is not copied. */
  #only: Buffer | undefined;
  #memory: Buffer | undefined;

  /** `expected`: the announced length, if any. */
  constructor(expected: number | undefined) {
    this.#expected = expected;
  }

  add(piece: Buffer): void {
    const bytes = this.bytes + piece.length;
    if (this.bytes === 0 && piece.length >= (this.#expected ?? 0)) this.#only = piece;
    else {
      if ((this.#memory?.length ?? 0) < bytes) this.makePlace(Math.max(bytes, this.#nextPlace()));
      piece.copy(this.#memory!, this.bytes);
    }
    this.bytes = bytes;
  }

  #nextPlace(): number {
    if (this.#expected === undefined) return 2 * (this.#memory?.length ?? this.bytes);
    return this.#memory ? this.#expected : Math.min(this.#expected, firstBytesMax);
  }

  /** Allocates memory for a body of `bytesMax`. The system assigns physical pages only when they are written. */
  makePlace(bytesMax: number): void {
    if (this.#memory && this.#memory.length >= bytesMax) return;
    const memory = Buffer.allocUnsafeSlow(bytesMax);
    (this.#memory ?? this.#only)?.copy(memory, 0, 0, this.bytes);
    this.#memory = memory;
    this.#only = undefined;
  }

  whole(): Buffer {
    return this.#memory?.subarray(0, this.bytes) ?? this.#only ?? Buffer.alloc(0);
  }
}
