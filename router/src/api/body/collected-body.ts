/** Gathers the pieces of a body. A large one is copied to its final memory at once, so that it is never held twice. */
export class CollectedBody {
  bytes = 0;
  readonly #expected: number | undefined;
  #chunks: Buffer[] = [];
  #whole: Buffer | undefined;

  /** `expected`: absent if the length was not announced. */
  constructor(expected: number | undefined) {
    this.#expected = expected;
  }

  add(chunk: Buffer): void {
    if (this.#expected !== undefined && chunk.length < this.#expected)
      this.#whole ??= Buffer.allocUnsafeSlow(this.#expected);
    if (this.#whole) chunk.copy(this.#whole, this.bytes);
    else this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }

  /** Allocates the final memory, once. The system provides pages only when they are written to. */
  makePlace(bytesMax: number): void {
    if (this.#whole) return;
    this.#whole = Buffer.allocUnsafeSlow(bytesMax);
    Buffer.concat(this.#chunks).copy(this.#whole);
    this.#chunks = [];
  }

  whole(): Buffer {
    if (this.#whole) return this.#whole.subarray(0, this.bytes);
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
  }
}
