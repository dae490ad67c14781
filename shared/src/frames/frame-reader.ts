/**
 * Cuts the bytes of a socket into frames. It passes on a body in the received pieces, and every other frame as a whole.
 */
import {
  BrokenRule,
  frameRules,
  frames,
  headerBytes,
  type FrameRule,
  type FrameType,
  type WholeFrameType,
} from "./frame.ts";

export interface FrameTarget {
  /** Called for a frame other than DATA. `payload` is a slice of the received bytes. */
  frame(type: WholeFrameType, stream: number, payload: Buffer): void;
  /** Called for the header of a DATA. Returns the receiver of its bytes. Undefined drops them. */
  dataBegins(stream: number, length: number): DataTaker | undefined;
}

export interface DataTaker {
  /** `bytes` is a slice of the received bytes. */
  dataCame(bytes: Buffer): void;
}

export class FrameReader {
  readonly #target: FrameTarget;
  /** The beginning of an incomplete frame. */
  #begun: Buffer | undefined;
  /** Missing bytes of the current DATA. */
  #dataLeft = 0;
  #dataTaker: DataTaker | undefined;

  constructor(target: FrameTarget) {
    this.#target = target;
  }

  /** Returns the number of frames and pieces of DATA. Throws `BrokenRule`. */
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

  /** Returns the number of bytes taken, or 0 if the frame is incomplete. */
  #takeFrame(bytes: Buffer, at: number): number {
    if (bytes.length - at < headerBytes) return 0;
    const length = bytes.readUInt32BE(at);
    const type = bytes[at + 4]! as FrameType;
    const stream = bytes.readUInt32BE(at + 5);
    const rule: FrameRule | undefined = frameRules[type];
    if (!rule) throw new BrokenRule("type", `a frame of type ${type}`);
    const [min, max] = rule.bytes;
    if (length < min || length > max) throw new BrokenRule("length", `a frame of type ${type} with ${length} bytes`);
    if ((stream === 0) !== (rule.of === "connection"))
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
