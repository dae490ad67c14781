/** Where the answer to a request is written: an HTTP response of the API, or what the portal makes of it. */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

export interface AnswerSink {
  /** Whether `head` was called: no other status can be sent any more. */
  readonly hasBegun: boolean;
  head(status: number, headers: OutgoingHttpHeaders): void;
  /** False: the client does not keep up; no more should come until `onDrain` calls back. */
  piece(bytes: Buffer): boolean;
  /** The answer is whole. False: not all of it has left yet. */
  end(last?: Buffer): boolean;
  /** Ends the connection without the end of the answer: at once, or after what was written has left. */
  cut(when: "at-once" | "written"): void;
  /** Lets a client that asked first send its body. Absent where the body has come already. */
  askForBody?(): void;
  /** Calls back each time that more can be taken. Of several callbacks the last one counts. */
  onDrain(callback: () => void): void;
  /** Calls back once nothing more can be written, never in the same turn. `isWhole`: all was handed over, up to `end`. */
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

  /** Nobody reads any more. */
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
    // Node gathers what is written within one turn; only then the socket knows of it.
    else setImmediate(() => socket.destroySoon());
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
