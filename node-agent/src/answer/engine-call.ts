/** One request to an engine. Its answer is read with backpressure. Closing the connection ends the request. */
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { EngineFault, type EngineFaultReason } from "../engines/dialects/engine-fault.ts";
import type { HttpConnection, HttpError, HttpSink } from "../http1/connection.ts";

interface EngineCallOptions {
  readonly connection: HttpConnection;
  /** Returns the connection to the pool after a complete response. The server may have closed it since. */
  readonly keep: () => void;
  readonly signal: EndSignal;
  readonly clock: Clock;
  /** The longest silence while the engine owes an answer. It may change while the request runs. */
  readonly silenceMsMax: () => number;
  /** The monotonic time of the engine's last sign of life in other requests. */
  readonly lastSignMs: () => number | undefined;
  /** Called when a part of an answer arrives. If undefined, such a part is not a sign of life. */
  readonly onSign: (() => void) | undefined;
}

/** The time for the response to end after the terminator. A connection that takes longer is not kept. */
const lingerMsMax = 1_000;
/** The time to the next check while no limit of silence is known. An engine is measured every 2 s. */
const recheckMs = 2_000;
const readAheadBytesMax = 64 << 10;

export class EngineCall implements HttpSink {
  readonly #options: EngineCallOptions;
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

  constructor(options: EngineCallOptions) {
    this.#options = options;
    this.#lastSignMs = options.clock.monotonicMs();
    this.#timer = options.clock.after(untilSilent(options.silenceMsMax(), 0), this.#checkSilence);
    this.#head.promise.catch(() => {});
    if (options.signal.aborted) this.#onAbort();
    else options.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get head(): Promise<void> {
    return this.#head.promise;
  }

  /**
   * Returns the next bytes, or undefined at the end. Rejects if the answer breaks off. Only one reader at a time may
   * call it.
   */
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
   * Call this when the data read is a sign of life. Only the reader knows, because llama-server sends comments every
   * second even while its generating thread hangs.
   */
  showLife(): void {
    this.#lastSignMs = this.#options.clock.monotonicMs();
    if (this.status === 200) this.#options.onSign?.();
  }

  /** Reads the whole body. Each part is a sign of life. Throws an `EngineFault` if the body exceeds `bytesMax`. */
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

  /** Call this when the reader is done. Keeps the connection if the response ends soon. */
  finish(): void {
    if (this.#state !== "open") return;
    this.#unwatch();
    if (this.#failure !== undefined) return this.#drop();
    if (this.#hasEnded) return this.#giveBack();
    this.#state = "lingering";
    this.#timer = this.#options.clock.after(lingerMsMax, () => this.#drop());
  }

  /** Closes the connection at once. Does nothing after `finish`. */
  close(): void {
    if (this.#state === "open") this.#drop();
  }

  onHead(status: number): void {
    this.#lastSignMs = this.#options.clock.monotonicMs();
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
    this.#options.connection.pause();
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

  readonly #onAbort = (): void => this.#fail(this.#options.signal.reason);

  readonly #checkSilence = (): void => {
    const { lastSignMs } = this.#options;
    const silenceMsMax = this.#options.silenceMsMax();
    const owes = this.#chunks.length === 0 && !this.#hasEnded;
    const lastMs = Math.max(this.#lastSignMs, lastSignMs() ?? 0);
    const silentMs = owes ? this.#options.clock.monotonicMs() - lastMs : 0;
    if (silentMs >= silenceMsMax) this.#fail(new EngineFault("silent"));
    else this.#timer = this.#options.clock.after(untilSilent(silenceMsMax, silentMs), this.#checkSilence);
  };

  #resume(): void {
    this.#isPaused = false;
    this.#lastSignMs = this.#options.clock.monotonicMs();
    this.#options.connection.resume();
  }

  /** Rejects this and later reads, and the reader then closes. Only the first failure counts. */
  #fail(reason: unknown): void {
    this.#failure ??= reason;
    this.#head.reject(this.#failure);
    this.#reader?.reject(this.#failure);
  }

  #drop(): void {
    this.#state = "closed";
    this.#unwatch();
    this.#options.connection.close();
  }

  #giveBack(): void {
    this.#state = "closed";
    this.#timer.cancel();
    this.#options.keep();
  }

  #unwatch(): void {
    this.#timer.cancel();
    this.#options.signal.removeEventListener("abort", this.#onAbort);
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
