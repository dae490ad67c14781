/**
 * Collects a body that comes in pieces, in one buffer of at most twice its length. It copies the pieces, because a
 * piece of one byte would otherwise keep a whole read buffer of the socket in memory.
 */
export class CollectedBytes {
  length = 0;
  #bytes = Buffer.allocUnsafeSlow(1 << 10);

  push(piece: Uint8Array): void {
    const length = this.length + piece.length;
    if (length > this.#bytes.length)
      this.#bytes = Buffer.concat([this.#bytes], Math.max(length, 2 * this.#bytes.length));
    this.#bytes.set(piece, this.length);
    this.length = length;
  }

  toString(): string {
    return this.#bytes.toString("utf8", 0, this.length);
  }
}
