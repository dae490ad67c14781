/** A sink takes the answer to a request: an HTTP response of the API, or the portal's playground. */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

export interface AnswerSink {
  /** True after `head` was called. Then the status cannot change any more. */
  readonly hasBegun: boolean;
  head(status: number, headers: OutgoingHttpHeaders): void;
  /** Writes a piece. Returns false if the client reads too slowly: wait for `onDrain` before the next piece. */
  piece(bytes: Buffer): boolean;
  /** Completes the answer. Returns false if part of it is still buffered. */
  end(last?: Buffer): boolean;
  /** Closes the connection before the answer is complete, at once or after the written bytes were sent. */
  cut(when: "at-once" | "written"): void;
  /** Makes the connection close after the answer; call it before `head`. Undefined for a sink without a connection. */
  endConnection?(): void;
  /** Sends `100 Continue`. Undefined if the body has already arrived. */
  askForBody?(): void;
  /** Calls back whenever more can be written. A later callback replaces an earlier one. */
  onDrain(callback: () => void): void;
  /**
   * Calls back, never synchronously, when nothing more can be written. `isWhole`: the system has taken everything
   * up to `end`.
   */
  onClosed(callback: (isWhole: boolean) => void): void;
}

/** A plain HTTP response. */
export class HttpAnswer implements AnswerSink {
  readonly #response: ServerResponse;
  #onDrain: () => void = () => {};

  constructor(response: ServerResponse) {
    this.#response = response;
    response.on("drain", () => this.#onDrain());
  }

  get hasBegun(): boolean {
    return this.#response.headersSent;
  }

  get isClosed(): boolean {
    return this.#response.destroyed;
  }

  head(status: number, headers: OutgoingHttpHeaders): void {
    this.#response.writeHead(status, headers);
  }

  piece(bytes: Buffer | string): boolean {
    return this.#response.write(bytes);
  }

  end(last?: Buffer | string): boolean {
    this.#response.end(last);
    return this.#response.writableFinished;
  }

  cut(when: "at-once" | "written"): void {
    const { socket } = this.#response.req;
    if (when === "at-once") socket.destroy();
    // Node.js buffers the writes of one turn of the event loop, so the socket gets them only afterwards.
    else setImmediate(() => socket.destroySoon());
  }

  endConnection(): void {
    this.#response.shouldKeepAlive = false;
  }

  askForBody(): void {
    this.#response.writeContinue();
  }

  onDrain(callback: () => void): void {
    this.#onDrain = callback;
  }

  onClosed(callback: (isWhole: boolean) => void): void {
    const response = this.#response;
    if (response.destroyed) return process.nextTick(callback, false);
    let isWhole = false;
    response.on("finish", () => (isWhole = true)).on("close", () => callback(isWhole));
  }
}
