/** Writes an answer as an event stream while it is made, or as one body. */
import type { ServerResponse } from "node:http";

export function reply(response: ServerResponse, status: number, body: unknown, type = "application/json"): void {
  if (response.headersSent) return;
  const bytes = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(bytes) }).end(bytes);
}

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

  open(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    this.#response.flushHeaders();
  }

  events(events: readonly object[]): void {
    for (const event of events) this.event(JSON.stringify(event));
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

  /** Announces a piece of 1,024 bytes and closes the connection within it. */
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

  /** Answers with one body instead of a stream. */
  body(status: number, body: string | Buffer | object): void {
    reply(this.#response, status, body);
  }

  /** Resets the connection without an end. */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }
}
