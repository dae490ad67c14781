/** Cuts what a socket gives into frames. A body is handed on in the pieces that come; every other frame is whole. */
import { BrokenRule, frames, headerBytes, lengths } from "./frame.ts";

export interface FrameTarget {
  /** A frame that is not DATA. `payload` is a slice of what the socket gave. */
  frame(type: number, stream: number, payload: Buffer): void;
  /** The header of a DATA. Returns who takes its bytes; undefined drops them. */
  dataBegins(stream: number, length: number): DataTaker | undefined;
}

export interface DataTaker {
  /** A slice of what the socket gave. */
  dataCame(bytes: Buffer): void;
}

export class FrameReader {
  readonly #target: FrameTarget;
  /** The beginning of a frame that has not come as a whole. */
  #begun: Buffer | undefined;
  /** Bytes to come of the DATA that has begun. */
  #dataLeft = 0;
  #dataTaker: DataTaker | undefined;

  constructor(target: FrameTarget) {
    this.#target = target;
  }

  /** Returns how many frames and pieces of DATA there were. Throws `BrokenRule`. */
  take(received: Buffer): number {
    const bytes = this.#begun ? Buffer.concat([this.#begun, received]) : received;
    this.#begun = undefined;
    let at = 0;
    let pieces = 0;
    for (; at < bytes.length; pieces++) {
      const read = this.#dataLeft > 0 ? this.#takeData(bytes, at) : this.#takeFrame(bytes, at);
      if (read === 0) {
        this.#begun = Buffer.from(bytes.subarray(at));
        return pieces;
      }
      at += read;
    }
    return pieces;
  }

  #takeData(bytes: Buffer, at: number): number {
    const piece = at === 0 && bytes.length <= this.#dataLeft ? bytes : bytes.subarray(at, at + this.#dataLeft);
    this.#dataLeft -= piece.length;
    this.#dataTaker?.dataCame(piece);
    return piece.length;
  }

  /** Returns how many bytes it took; 0: the frame is not whole. */
  #takeFrame(bytes: Buffer, at: number): number {
    if (bytes.length - at < headerBytes) return 0;
    const length = bytes.readUInt32BE(at);
    const type = bytes[at + 4]!;
    const stream = bytes.readUInt32BE(at + 5);
    const bounds = lengths[type];
    if (!bounds) throw new BrokenRule("type", `a frame of type ${type}`);
    if (length < bounds[0] || length > bounds[1])
      throw new BrokenRule("length", `a frame of type ${type} with ${length} bytes`);
    const isOfConnection = type >= frames.ping && type <= frames.goAway;
    if ((stream === 0) !== isOfConnection)
      throw new BrokenRule("stream", `a frame of type ${type} for stream ${stream}`);
    if (type === frames.data) {
      this.#dataTaker = this.#target.dataBegins(stream, length);
      this.#dataLeft = length;
      return headerBytes;
    }
    if (bytes.length - at < headerBytes + length) return 0;
    this.#target.frame(type, stream, bytes.subarray(at + headerBytes, at + headerBytes + length));
    return headerBytes + length;
  }
}
