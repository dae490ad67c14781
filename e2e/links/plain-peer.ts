/**
 * One end of a data connection in plain buffers, written only from `shared/src/frames/README.md`. It shares no code
 * with router and agent, so that it finds mistakes which both make. It also checks the frames of the other end.
 */
import { connect, type Socket } from "node:net";
import { once } from "node:events";

export const frameTypes = {
  head: 1,
  data: 2,
  end: 3,
  cancel: 4,
  windowed: 5,
  ping: 6,
  pong: 7,
  goaway: 8,
  done: 9,
} as const;
const { head, data, end, cancel, windowed, ping, pong, goaway } = frameTypes;
export const window = 262_144;
const half = 131_072;

interface PlainFrame {
  readonly type: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** `length` replaces the payload's length in the header. */
export function plainFrame(type: number, stream: number, payload: Buffer | string, length?: number): Buffer {
  const bytes = Buffer.from(payload);
  const start = Buffer.alloc(9);
  start.writeUInt32BE(length ?? bytes.length, 0);
  start.writeUInt8(type, 4);
  start.writeUInt32BE(stream, 5);
  return Buffer.concat([start, bytes]);
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const u8 = (value: number) => Buffer.from([value]);

/** The least and the most bytes of a payload, by type. */
const lengths = [undefined, [1, 16_384], [1, 65_536], [1, 1], [1, 1], [4, 4], [8, 8], [8, 8], [0, 1_024]] as const;

/** The state of a stream at this end: the credit of each end, and the frames that have arrived. */
interface Seen {
  ourCredit: number;
  theirCredit: number;
  theirHead: boolean;
  theirEnd: boolean;
  isOver: boolean;
}

export class PlainPeer {
  readonly #socket: Socket;
  readonly #role: "router" | "agent";
  readonly #streams = new Map<number, Seen>();
  #highest = 0;
  #pings = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #waiting: (() => void)[] = [];
  #held: Buffer[] | undefined;
  /** All received frames, including PING. */
  readonly frames: PlainFrame[] = [];
  /** Rules that the other end has broken. */
  readonly broken: string[] = [];
  /** The text of the other end's GOAWAY. */
  farewell: string | undefined;
  isClosed = false;
  hasFin = false;
  /** Whether this peer answers PINGs. Without answers the other end gives it up. */
  answers = true;
  /** The answer to the router's question for the identity. Undefined sends no answer. */
  identity: object | undefined = { node: "gpu-1", bootId: "boot" };
  identityRecord: readonly unknown[] = [200, "json"];
  /** For agents: the last stream that the router opened, except the question for the identity. */
  opened = 0;
  /** For agents: called for each of these streams. */
  onOpened: (stream: number, record: readonly unknown[]) => void = () => {};

  constructor(socket: Socket, role: "router" | "agent") {
    this.#socket = socket;
    this.#role = role;
    socket.on("error", () => {});
    socket.on("end", () => (this.hasFin = true));
    socket.on("close", () => {
      this.isClosed = true;
      this.#wake();
    });
    socket.on("data", (part: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, part]);
      while (this.#takeFrame());
      this.#wake();
    });
  }

  static async dial(port: number): Promise<PlainPeer> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    return new PlainPeer(socket, "agent");
  }

  /** Sends these bytes unchanged and unchecked. */
  pour(...bytes: readonly Buffer[]): void {
    if (this.#held) this.#held.push(...bytes);
    else this.#socket.write(Buffer.concat(bytes));
  }

  /**
   * Sends each byte in its own turn of the event loop. A due PONG follows afterwards, because it must not be inside a
   * frame.
   */
  async pourSlowly(bytes: Buffer): Promise<void> {
    this.#held = [];
    for (const byte of bytes) {
      this.#socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const held = this.#held;
    this.#held = undefined;
    this.pour(...held);
  }

  /** Announces a stream that the test opens itself. */
  expectStream(stream: number): void {
    this.#highest = stream;
    this.#streams.set(stream, newStream());
  }

  /** Opens a stream. With `body`, also sends the whole body. */
  open(record: unknown, body?: Buffer | string, stream = this.#highest + 2): number {
    this.expectStream(stream);
    this.pour(plainFrame(head, stream, JSON.stringify(record)));
    if (body !== undefined) {
      if (body.length > 0) this.write(stream, body);
      this.end(stream);
    }
    return stream;
  }

  /** Begins an answer. */
  begin(stream: number, record: readonly unknown[] = [200, "events", 0, ""]): void {
    this.pour(plainFrame(head, stream, JSON.stringify(record)));
  }

  write(stream: number, body: Buffer | string): void {
    const bytes = Buffer.from(body);
    this.#streams.get(stream)!.ourCredit -= bytes.length;
    for (let at = 0; at < bytes.length; at += 65_536)
      this.pour(plainFrame(data, stream, bytes.subarray(at, at + 65_536)));
  }

  end(stream: number, how = 0): void {
    if (this.#role === "agent") this.#streams.get(stream)!.isOver = true;
    this.pour(plainFrame(end, stream, u8(how)));
  }

  cancel(stream: number, reason = 0): void {
    this.#streams.get(stream)!.isOver = true;
    this.pour(plainFrame(cancel, stream, u8(reason)));
  }

  /** Lets the other end send this many bytes more. */
  giveCredit(stream: number, bytes: number): void {
    this.#streams.get(stream)!.theirCredit += bytes;
    this.pour(plainFrame(windowed, stream, u32(bytes)));
  }

  credit(stream: number): number {
    return this.#streams.get(stream)!.ourCredit;
  }

  of(stream: number, type?: number): readonly PlainFrame[] {
    return this.frames.filter((frame) => frame.stream === stream && (type === undefined || frame.type === type));
  }

  bodyOf(stream: number): Buffer {
    return Buffer.concat(this.of(stream, data).map(({ payload }) => payload));
  }

  recordOf(stream: number): readonly unknown[] {
    return JSON.parse(String(this.of(stream, head)[0]!.payload)) as unknown[];
  }

  /**
   * Resolves once the condition is true, which is checked after each frame. Rejects if the connection closes before.
   */
  async until(what: string, condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.isClosed) throw new Error(`closed without ${what}: ${this.farewell ?? "no GOAWAY"}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async closed(): Promise<void> {
    while (!this.isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves with how the other end ended a stream: `end N` (agents) or `cancel N`. */
  async ending(stream: number): Promise<string> {
    const last = () => [...this.of(stream, cancel), ...(this.#role === "router" ? this.of(stream, end) : [])][0];
    await this.until(`an end of stream ${stream}`, () => last() !== undefined);
    const { type, payload } = last()!;
    return `${type === end ? "end" : "cancel"} ${payload[0]}`;
  }

  /** Resolves when the other end has handled everything that was sent before. */
  async settled(): Promise<void> {
    const bytes = Buffer.from(String(++this.#pings).padStart(8, "."));
    this.pour(plainFrame(ping, 0, bytes));
    await this.until("a PONG", () => this.frames.some(({ type, payload }) => type === pong && payload.equals(bytes)));
  }

  /** Starts or stops reading. It reads from the beginning. */
  reads(whether: boolean): void {
    if (whether) this.#socket.resume();
    else this.#socket.pause();
  }

  /** Sends FIN. The other end may still send. */
  fin(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #takeFrame(): boolean {
    if (this.#bytes.length < 9) return false;
    const length = this.#bytes.readUInt32BE(0);
    if (this.#bytes.length < 9 + length) return false;
    const payload = this.#bytes.subarray(9, 9 + length);
    const frame = { type: this.#bytes.readUInt8(4), stream: this.#bytes.readUInt32BE(5), payload };
    this.#bytes = this.#bytes.subarray(9 + length);
    this.frames.push(frame);
    const problem = this.#check(frame);
    if (problem !== undefined) this.broken.push(`${problem}: type ${frame.type}, stream ${frame.stream}`);
    this.#answer(frame);
    return true;
  }

  #answer({ type, stream, payload }: PlainFrame): void {
    if (type === ping && this.answers) this.pour(plainFrame(pong, 0, payload));
    if (type === goaway) this.farewell = String(payload);
    if (type !== head || this.#role === "router") return;
    const record = JSON.parse(String(payload)) as readonly unknown[];
    if (record[0] !== "/weiche/identity") {
      this.opened = stream;
      return this.onOpened(stream, record);
    }
    if (!this.identity) return;
    this.begin(stream, this.identityRecord);
    this.write(stream, JSON.stringify(this.identity));
    this.end(stream);
  }

  /** Returns the rule that the other end breaks with this frame, according to the page. */
  #check({ type, stream, payload }: PlainFrame): string | undefined {
    const bounds = lengths[type];
    if (!bounds) return "type";
    if (payload.length < bounds[0] || payload.length > bounds[1]) return "length";
    if (type >= ping !== (stream === 0)) return "stream 0";
    if (this.farewell) return "a frame after a GOAWAY with a text";
    if (stream === 0) return undefined;
    const seen = this.#streams.get(stream);
    if (type === head && this.#role === "agent") {
      if (stream <= this.#highest) return "the number of a new stream";
      if (this.farewell !== undefined) return "a new stream after a GOAWAY";
      this.#highest = stream;
      this.#streams.set(stream, { ...newStream(), theirHead: true });
      return undefined;
    }
    if (!seen) return "a stream that was never opened";
    return seen.isOver ? undefined : this.#checkOpen(type, payload, seen);
  }

  #checkOpen(type: number, payload: Buffer, seen: Seen): string | undefined {
    switch (type) {
      case head:
        if (seen.theirHead) return "a second HEAD";
        seen.theirHead = true;
        return undefined;
      case data:
        if (!seen.theirHead || seen.theirEnd) return "DATA outside of the body";
        seen.theirCredit -= payload.length;
        return seen.theirCredit < 0 ? "DATA longer than the credit" : undefined;
      case end:
        if (!seen.theirHead || seen.theirEnd) return "END outside of the body";
        seen.theirEnd = true;
        if (this.#role === "router") seen.isOver = true;
        return this.#role === "agent" && payload[0] !== 0 ? "an END of a request that is not 0" : undefined;
      case windowed: {
        const bytes = payload.readUInt32BE(0);
        seen.ourCredit += bytes;
        if (seen.ourCredit > window) return "credit above the window";
        return bytes < half ? "a WINDOW of less than half a window" : undefined;
      }
      default:
        seen.isOver = true;
        return undefined;
    }
  }
}

function newStream(): Seen {
  return { ourCredit: window, theirCredit: window, theirHead: false, theirEnd: false, isOver: false };
}
