/** Where an answer goes: an event stream, written as it is made. */
import type { ServerResponse } from "node:http";

export class Sink {
  readonly #response: ServerResponse;
  /** Writes each event in two pieces, cut inside a code point. */
  splits = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get isOpen(): boolean {
    return this.#response.headersSent;
  }

  open(headers: Readonly<Record<string, string>> = {}): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", ...headers });
    this.#response.flushHeaders();
  }

  event(data: string): void {
    const text = `data: ${data}\n\n`;
    if (!this.splits) return void this.#response.write(text);
    const bytes = Buffer.from(text.replaceAll('"t', '"ü'));
    const cut = bytes.indexOf(0xc3) + 1;
    this.#response.write(bytes.subarray(0, cut));
    this.#response.write(bytes.subarray(cut));
  }

  raw(bytes: Buffer | string): void {
    this.#response.write(bytes);
  }

  /** Announces a piece of 1,024 bytes and goes in the midst of it. */
  cutChunk(): void {
    this.open();
    const { socket } = this.#response;
    socket?.write("400\r\ndata: {", () => socket.destroySoon());
  }

  terminator(): void {
    this.#response.write("data: [DONE]\n\n");
  }

  end(): void {
    this.#response.end();
  }

  /** A body as a whole. */
  body(status: number, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): void {
    this.#response.writeHead(status, {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      ...headers,
    });
    this.#response.end(body);
  }

  /** The connection is gone, without an end. */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }
}
