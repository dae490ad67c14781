/**
 * A queue of bytes to send. It copies small pieces into blocks, so that many of them take little more memory than their
 * bytes.
 */

/** Longer pieces are not copied. */
const copiedBytesMax = 4 << 10;
const blockBytesMax = 16 << 10;

export class ByteQueue {
  readonly #pieces: Buffer[] = [];
  /** The block at the end of the queue. Its bytes from `#from` to `#to` wait, and more may follow. */
  #block: Buffer | undefined;
  #from = 0;
  #to = 0;
  /** Total bytes of the small pieces since the last long piece. */
  #copied = 0;
  bytes = 0;

  push(piece: string | Buffer): void {
    const length = Buffer.byteLength(piece);
    if (length > copiedBytesMax) {
      this.#endBlock();
      this.#copied = 0;
      this.#pieces.push(typeof piece === "string" ? bytesOf(piece, length) : piece);
    } else {
      const block = this.#blockFor(length);
      this.#copied += length;
      this.#to += typeof piece === "string" ? block.write(piece, this.#to) : piece.copy(block, this.#to);
    }
    this.bytes += length;
  }

  /** Takes 1 to `bytesMax` bytes from a queue that is not empty. */
  shift(bytesMax: number): Buffer {
    const slice = this.#pieces.length > 0 ? this.#shiftPiece(bytesMax) : this.#shiftBlock(bytesMax);
    this.bytes -= slice.length;
    return slice;
  }

  #shiftPiece(bytesMax: number): Buffer {
    const [first] = this.#pieces as [Buffer];
    if (first.length <= bytesMax) return this.#pieces.shift()!;
    this.#pieces[0] = first.subarray(bytesMax);
    return first.subarray(0, bytesMax);
  }

  #shiftBlock(bytesMax: number): Buffer {
    const from = this.#from;
    this.#from = Math.min(from + bytesMax, this.#to);
    return this.#block!.subarray(from, this.#from);
  }

  /**
   * Blocks grow with the small pieces in a row. Most queues have a single piece, and others have long pieces between
   * small ones.
   */
  #blockFor(bytes: number): Buffer {
    if (this.#block && this.#block.length - this.#to >= bytes) return this.#block;
    this.#endBlock();
    return (this.#block = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(this.#copied, blockBytesMax))));
  }

  #endBlock(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#block!.subarray(this.#from, this.#to));
    this.#block = undefined;
    this.#from = 0;
    this.#to = 0;
  }
}

/**
 * Encodes the text outside Node's pool. In the pool, waiting bytes and short-lived buffers would keep each other in
 * memory.
 */
function bytesOf(text: string, length: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(length);
  bytes.write(text);
  return bytes;
}
