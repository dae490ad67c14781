/** One HTTP/1.1 connection to an engine, over TCP, TLS or a Unix socket. It carries one request at a time. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { assert } from "@weiche/shared/assert.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ReadTurns } from "@weiche/shared/time/read-turns.ts";
import { MalformedResponse, ResponseParser, type ResponseSink } from "./response-parser.ts";

/** The address of a server. With `socketPath`, the origin is only its name. */
export interface HttpAddress {
  readonly origin: string;
  readonly socketPath?: string | undefined;
}

interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly requestId?: string;
  /** JSON. */
  readonly body: Buffer | undefined;
  /** Whether the server should keep the connection open for another request. */
  readonly keep: boolean;
}

/** The message contains the system's error or names what is malformed. It quotes nothing from the peer. */
export class HttpError extends Error {
  /** `refused`: no server listens there. `lost`: the connection ended before the response did. */
  readonly failure: "refused" | "lost" | "malformed";

  constructor(failure: HttpError["failure"], message: string) {
    super(message);
    this.failure = failure;
  }
}

/** `onEnd` or `onLost` is the last call. */
export interface HttpSink extends ResponseSink {
  /** The response is complete. The connection is free for another request, or closed. */
  onEnd(): void;
  onLost(error: HttpError): void;
}

/** Delay between attempts to connect to a Unix socket whose backlog is full. */
const connectAgainMs = 20;
/** Up to this size, head and body are sent as one buffer. */
const copiedBytesMax = 64 << 10;
/** Shared by all connections. Each copies its data before another one reads. */
const readBuffer = Buffer.allocUnsafeSlow(16 << 10);
/** Shared by all connections, because they use one event loop. */
const readTurns = new ReadTurns();

export class HttpConnection {
  readonly #origin: URL;
  readonly #socketPath: string | undefined;
  readonly #clock: Clock;
  readonly #parser = new ResponseParser();
  #socket: Socket;
  #isConnected = false;
  #isClosed = false;
  #isPaused = false;
  #sink: HttpSink | undefined;
  #keeps = false;
  /**
   * The body in the last read. It is joined, because each waiting piece costs a hundred bytes and may contain one byte.
   */
  #pieces: Buffer[] = [];
  /** Written as soon as the socket is connected. */
  #unsent: readonly Buffer[] = [];
  /** Called when the connection ends while it carries no request. */
  onIdleEnd: () => void = () => {};

  /** Connects without a deadline. A Unix socket with a full backlog returns EAGAIN, so the connection retries. */
  constructor(address: HttpAddress, clock: Clock) {
    this.#origin = new URL(address.origin);
    this.#socketPath = address.socketPath;
    this.#clock = clock;
    this.#socket = this.#dial();
  }

  /**
   * Whether the connection may carry a request. Check it just before use, because the server may close an idle
   * connection at any time.
   */
  get isFree(): boolean {
    return this.#sink === undefined && !this.#isClosed;
  }

  /** Sends a request. Its response goes to `sink`. Call it only while the connection is free. */
  send(request: HttpRequest, sink: HttpSink): void {
    assert(this.isFree, "a connection carries one request at a time");
    this.#sink = sink;
    this.#keeps = request.keep;
    this.#parser.expect({ onHead: (status) => sink.onHead(status), onBody: (bytes) => void this.#pieces.push(bytes) });
    this.#unsent = bytesOf(request, this.#origin.host);
    if (this.#isConnected) this.#write();
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket.resume();
  }

  /** Ends the connection at once. The sink gets no more calls. */
  close(): void {
    this.#isClosed = true;
    this.#sink = undefined;
    this.#unsent = [];
    this.#parser.stop();
    this.#socket.destroy();
  }

  #dial(): Socket {
    const socketPath = this.#socketPath;
    const { protocol, hostname, port } = this.#origin;
    const host = hostname.replace(/^\[|\]$/g, "");
    const isTls = protocol === "https:" && socketPath === undefined;
    const target = socketPath === undefined ? { host, port: Number(port) || (isTls ? 443 : 80) } : { path: socketPath };
    const options = { ...target, noDelay: true, onread: { buffer: readBuffer, callback: this.#onRead } };
    const names = { ALPNProtocols: ["http/1.1"], ...(isIP(host) ? {} : { servername: host }) };
    const socket = isTls ? connectTls({ ...options, ...names }) : connectTcp(options);
    socket.once(isTls ? "secureConnect" : "connect", () => {
      this.#isConnected = true;
      this.#write();
    });
    socket.once("end", () => {
      if (this.#parser.finish()) this.#onWhole(false);
      this.#lose(new HttpError("lost", "the peer ended the connection"));
    });
    socket.on("error", (error) => this.#onError(error));
    return socket;
  }

  #write(): void {
    for (const part of this.#unsent) this.#socket.write(part);
    this.#unsent = [];
  }

  /** Returns whether Node.js may read again in this turn. Otherwise Node.js would read many times. */
  readonly #onRead = (bytesRead: number): boolean => {
    try {
      const end = this.#parser.push(Buffer.from(readBuffer.subarray(0, bytesRead)));
      this.#handOn();
      if (end !== "unfinished") this.#onWhole(end === "reusable");
    } catch (error) {
      if (!(error instanceof MalformedResponse)) throw error;
      this.#handOn();
      this.#lose(new HttpError("malformed", error.message));
    }
    if (bytesRead < readBuffer.length || this.#isClosed) return true;
    readTurns.later(() => {
      if (!this.#isPaused && !this.#isClosed) this.#socket.resume();
    });
    return false;
  };

  #handOn(): void {
    const pieces = this.#pieces;
    if (pieces.length === 0) return;
    this.#pieces = [];
    this.#sink?.onBody(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
  }

  #onWhole(isReusable: boolean): void {
    const sink = this.#sink;
    this.#sink = undefined;
    // The server answered while the request was still being sent. How it handles the rest is unknown.
    const isFree = isReusable && this.#keeps && this.#socket.writableLength === 0;
    if (sink && !isFree) this.close();
    // The paused reader may not need the rest. A paused connection would not notice that the server closes it.
    else this.resume();
    sink?.onEnd();
  }

  #onError(error: NodeJS.ErrnoException): void {
    if (error.code === "EAGAIN" && !this.#isConnected) {
      this.#clock.after(connectAgainMs, () => {
        if (!this.#isClosed) this.#socket = this.#dial();
      });
      return;
    }
    const isRefused = !this.#isConnected && (error.code === "ECONNREFUSED" || error.code === "ENOENT");
    this.#lose(new HttpError(isRefused ? "refused" : "lost", error.message));
  }

  #lose(error: HttpError): void {
    if (this.#isClosed) return;
    const sink = this.#sink;
    this.close();
    if (sink) sink.onLost(error);
    else this.onIdleEnd();
  }
}

const headText = /^[\x21-\x7e]+$/;

function bytesOf({ method, path, requestId, body, keep }: HttpRequest, host: string): readonly Buffer[] {
  assert(headText.test(path + (requestId ?? "")), "a path and a request id have no spaces or control characters");
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${keep ? "keep-alive" : "close"}\r\n`;
  if (requestId !== undefined) head += `x-request-id: ${requestId}\r\n`;
  if (body) head += "content-type: application/json\r\n";
  if (method === "POST") head += `content-length: ${body?.length ?? 0}\r\n`;
  const bytes = Buffer.from(`${head}\r\n`, "latin1");
  if (!body) return [bytes];
  return body.length > copiedBytesMax ? [bytes, body] : [Buffer.concat([bytes, body])];
}
