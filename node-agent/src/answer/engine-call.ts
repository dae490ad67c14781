/** One request to an engine. Its answer is read with backpressure; closing the connection ends it. */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { EngineFault, type EngineFaultReason } from "../engines/dialects/engine-fault.ts";
import type { HttpConnection, HttpError, HttpSink } from "../http1/connection.ts";

interface EngineCallParts {
  readonly connection: HttpConnection;
  /** Takes the connection back after a whole response. The server may have closed it since. */
  readonly keep: () => void;
  readonly signal: EndSignal;
  readonly clock: Clock;
  /** Maximum time without a sign of life while the engine owes an answer; it may change while the request runs. */
  readonly silenceMsMax: () => number;
  /** Monotonic time of the engine's last sign of life in other requests. */
  readonly lastSignMs: () => number | undefined;
  /** Called when a part of an answer has arrived. Undefined: such a part is no sign of life. */
  readonly onSign: (() => void) | undefined;
}

/** Time for the response to end after the terminator; after that the connection is not kept. */
const lingerMsMax = 1_000;
/** Time to the next look at a limit of silence that is not there yet: an engine is measured each 2 s. */
const recheckMs = 2_000;
const readAheadBytesMax = 64 << 10;

export class EngineCall implements HttpSink {
  readonly #parts: EngineCallParts;
  readonly #head = Promise.withResolvers<void>();
  status = 0;
  #chunks: Buffer[] = [];
  #chunksBytes = 0;
  #isPaused = false;
  #hasEnded = false;
  #failure: unknown;
  #reader: PromiseWithResolvers<Buffer | undefined> | undefined;
  #lastSignMs: number;
  #timer: Timer;
  #state: "open" | "lingering" | "closed" = "open";

  constructor(parts: EngineCallParts) {
    this.#parts = parts;
    this.#lastSignMs = parts.clock.monotonicMs();
    this.#timer = parts.clock.after(untilSilent(parts.silenceMsMax(), 0), this.#checkSilence);
    this.#head.promise.catch(() => {});
    if (parts.signal.aborted) this.#onAbort();
    else parts.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get head(): Promise<void> {
    return this.#head.promise;
  }

  /** The next bytes, undefined at the end. Rejects when the answer is broken off. One reader at a time. */
  async read(): Promise<Buffer | undefined> {
    const chunk = this.#chunks.shift();
    if (chunk) {
      this.#chunksBytes -= chunk.length;
      if (this.#isPaused && this.#chunks.length === 0) this.#resume();
      return chunk;
    }
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#hasEnded) return undefined;
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  /**
   * Call when what was read is a sign of life. Only the reader can tell: llama-server sends comments each second, even
   * while its generating thread hangs.
   */
  showLife(): void {
    this.#lastSignMs = this.#parts.clock.monotonicMs();
    if (this.status === 200) this.#parts.onSign?.();
  }

  /** Reads the whole body, each part of which is a sign of life. Throws an `EngineFault` beyond `bytesMax`. */
  async readAll(bytesMax: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for (let chunk = await this.read(); chunk; chunk = await this.read()) {
      this.showLife();
      bytes += chunk.length;
      if (bytes > bytesMax) throw new EngineFault("too large");
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  /** Call when the reader is done: keeps the connection if the response ends soon. */
  finish(): void {
    if (this.#state !== "open") return;
    this.#unwatch();
    if (this.#failure !== undefined) return this.#drop();
    if (this.#hasEnded) return this.#giveBack();
    this.#state = "lingering";
    this.#timer = this.#parts.clock.after(lingerMsMax, () => this.#drop());
  }

  /** Closes the connection at once. Does nothing after `finish`. */
  close(): void {
    if (this.#state === "open") this.#drop();
  }

  onHead(status: number): void {
    this.#lastSignMs = this.#parts.clock.monotonicMs();
    this.status = status;
    this.#head.resolve();
  }

  onBody(bytes: Buffer): void {
    if (this.#state !== "open") return this.#drop();
    const reader = this.#reader;
    if (reader) {
      this.#reader = undefined;
      return reader.resolve(bytes);
    }
    this.#chunks.push(bytes);
    this.#chunksBytes += bytes.length;
    if (this.#chunksBytes < readAheadBytesMax || this.#isPaused) return;
    this.#isPaused = true;
    this.#parts.connection.pause();
  }

  onEnd(): void {
    this.#hasEnded = true;
    this.#isPaused = false;
    this.#reader?.resolve(undefined);
    if (this.#state === "lingering") this.#giveBack();
  }

  onLost({ failure, message }: HttpError): void {
    this.#fail(new EngineFault(reasons[failure], failure === "malformed" ? `HTTP: ${message}` : message));
    if (this.#state === "lingering") this.#drop();
  }

  readonly #onAbort = (): void => this.#fail(this.#parts.signal.reason);

  readonly #checkSilence = (): void => {
    const { lastSignMs } = this.#parts;
    const silenceMsMax = this.#parts.silenceMsMax();
    const owes = this.#chunks.length === 0 && !this.#hasEnded;
    const lastMs = Math.max(this.#lastSignMs, lastSignMs() ?? 0);
    const silentMs = owes ? this.#parts.clock.monotonicMs() - lastMs : 0;
    if (silentMs >= silenceMsMax) this.#fail(new EngineFault("silent"));
    else this.#timer = this.#parts.clock.after(untilSilent(silenceMsMax, silentMs), this.#checkSilence);
  };

  #resume(): void {
    this.#isPaused = false;
    this.#lastSignMs = this.#parts.clock.monotonicMs();
    this.#parts.connection.resume();
  }

  /** Rejects this and later reads, whereupon the reader closes. Only the first failure counts. */
  #fail(reason: unknown): void {
    this.#failure ??= reason;
    this.#head.reject(this.#failure);
    this.#reader?.reject(this.#failure);
  }

  #drop(): void {
    this.#state = "closed";
    this.#unwatch();
    this.#parts.connection.close();
  }

  #giveBack(): void {
    this.#state = "closed";
    this.#timer.cancel();
    this.#parts.keep();
  }

  #unwatch(): void {
    this.#timer.cancel();
    this.#parts.signal.removeEventListener("abort", this.#onAbort);
  }
}

function untilSilent(silenceMsMax: number, silentMs: number): number {
  return silenceMsMax === Infinity ? recheckMs : silenceMsMax - silentMs;
}

const reasons: Readonly<Record<HttpError["failure"], EngineFaultReason>> = {
  refused: "refused",
  lost: "connection lost",
  malformed: "bad framing",
};
