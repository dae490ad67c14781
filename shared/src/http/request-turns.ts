/**
 * Reads one request at a time from each connection of an HTTP/1.1 server. By default Node parses all received bytes and
 * emits every request in them in one turn of the event loop, which may be thousands of short requests.
 *
 * Here the parser gets one head, then its body. Later bytes wait in the socket, except for a few KB that reveal a
 * disconnect. A connection must also make progress: empty lines, an unwanted body or an unread answer do not keep it
 * open. If nothing reads a chunked body, only the chunks of one turn are parsed. Read bodies with the event `data`,
 * because only the event `resume` continues the parsing.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Clock, Timer } from "../time/clock.ts";
import { LineTurns } from "./line-turns.ts";

export interface TurnTimes {
  /** Time limit for a request's head, from its first byte to its last. */
  readonly headersMsMax: number;
  /** Time limit for the rest of a body after the answer to its request. */
  readonly discardMs: number;
  /** Time limit for sending a finished answer, plus one second for every 25 KB of it. */
  readonly stallMsMax: number;
}

/** The only end of a head that Node's parser accepts. */
const headEnd = "\n\r\n";
/** With more waiting bytes, the socket is not read. */
const heldBytesMax = 16 << 10;
/** Only the parser detects where a chunked body ends. It gets pieces of at least this size that end like a head. */
const chunkedPieceBytesMin = 1 << 10;
const flushedBytesPerMs = 25;

/** Call before the server gets its first connection. */
export function readOneAtATime(server: Server, clock: Clock, times: TurnTimes): void {
  const turnsOf = new WeakMap<Socket, RequestTurns>();
  const lines = new LineTurns();
  // Runs after Node's own listener, which has just started reading.
  server.on(server instanceof TlsServer ? "secureConnection" : "connection", (socket: Socket) => {
    turnsOf.set(socket, new RequestTurns(socket, server, { clock, times, lines }));
  });
  const begin = (request: IncomingMessage, response: ServerResponse) =>
    turnsOf.get(request.socket)?.begin(request, response);
  server.prependListener("request", begin);
  for (const event of ["checkContinue", "checkExpectation"])
    if (server.listenerCount(event) > 0) server.prependListener(event, begin);
}

/** Node stores the parser in a property of the socket. */
type Parsed = Socket & { readonly parser?: unknown };

interface TurnParts {
  readonly clock: Clock;
  readonly times: TurnTimes;
  readonly lines: LineTurns;
}

class RequestTurns {
  readonly #socket: Socket;
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #times: TurnTimes;
  readonly #lines: LineTurns;
  /** Passes bytes to Node's parser. */
  readonly #parse: (bytes: Buffer) => void;
  readonly #parser: unknown;
  #held: Buffer | undefined;
  /**
   * Number of waiting bytes that contain no end of a head. Without this number, the search would begin again at the
   * first chunk for each piece of data.
   */
  #searchedBytes = 0;
  #isPumping = false;
  /** The next piece of a chunked body waits for a later turn of the event loop. */
  #waitsForTurn = false;
  /** The socket was paused here because too many bytes of the body wait. */
  #isHolding = false;
  /** Number of requests whose response is not closed. */
  #open = 0;
  /** The last request that began. Its body may continue after its answer. */
  #request: IncomingMessage | undefined;
  /** Bytes of its body that the parser has not received yet. Undefined if the body is chunked. */
  #bodyLeft: number | undefined = 0;
  /** The last two bytes of an unfinished head. */
  #headTail = "";
  #deadline: Timer | undefined;

  constructor(socket: Socket, server: Server, { clock, times, lines }: TurnParts) {
    this.#socket = socket;
    this.#server = server;
    this.#clock = clock;
    this.#times = times;
    this.#lines = lines;
    this.#parser = (socket as Parsed).parser;
    const [parse] = socket.listeners("data");
    this.#parse = parse as (bytes: Buffer) => void;
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    socket.off("data", this.#parse);
    socket.on("resume", () => this.#pump());
    socket.once("close", () => this.#deadline?.cancel());
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#open++;
    this.#request = request;
    const { headers } = request;
    this.#bodyLeft = headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : undefined;
    this.#meet(undefined);
    response.on("prefinish", this.#mustFlush).on("close", this.#answered);
  }

  #take(bytes: Buffer): void {
    if (this.#held && this.#held.length >= heldBytesMax) return this.#putBack(bytes);
    this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
    this.#pump();
  }

  /** Node's server resumes the socket whenever a piece of a body is read, even if enough data waits here. */
  #putBack(bytes: Buffer): void {
    this.#hold();
    this.#socket.unshift(bytes);
  }

  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#held && !this.#socket.isPaused() && !this.#waitsForTurn) {
      if (!this.#isParsed) this.#held = undefined;
      else if (this.#isInBody) this.#parseBody(this.#held);
      else if (this.#open > 0) break;
      else if (this.#parseHead(this.#held)) break;
    }
    this.#isPumping = false;
    if (this.#held && this.#held.length >= heldBytesMax && !this.#socket.isPaused()) this.#hold();
  }

  #hold(): void {
    this.#isHolding = this.#waitsForTurn;
    this.#socket.pause();
  }

  readonly #waitForTurn = (): void => this.#lines.wait(this.#nextTurn);

  readonly #nextTurn = (): void => {
    this.#waitsForTurn = false;
    if (this.#isHolding) this.#socket.resume();
    this.#isHolding = false;
    // Parses before it returns, because the event `resume` comes later, when the turn would already have woken every
    // waiter.
    this.#pump();
  };

  /** Node reuses the parser for another connection once this connection is closed or upgraded. */
  get #isParsed(): boolean {
    return this.#socket.writable && (this.#socket as Parsed).parser === this.#parser;
  }

  get #isInBody(): boolean {
    return this.#bodyLeft === undefined ? this.#request?.complete === false : this.#bodyLeft > 0;
  }

  #parseBody(held: Buffer): void {
    if (this.#bodyLeft === undefined) {
      this.#parseChunks(held);
    } else {
      const end = Math.min(this.#bodyLeft, held.length);
      this.#bodyLeft -= end;
      this.#parseUpTo(end, held);
    }
    if (this.#open === 0 && !this.#isInBody) this.#meet(undefined);
  }

  #parseChunks(held: Buffer): void {
    if (this.#lines.isOver) {
      this.#waitsForTurn = true;
      this.#waitForTurn();
      return;
    }
    const request = this.#request!;
    // Node itself stops after 64 KB of unread data. In one-byte chunks, each of which is a buffer, 64 KB take 25 MB.
    if (request.readableLength > 0 && request.readableFlowing !== true) {
      this.#waitsForTurn = true;
      request.once("resume", this.#waitForTurn);
      return;
    }
    const headEndAt = held.indexOf(headEnd, Math.max(chunkedPieceBytesMin, this.#searchedBytes - headEnd.length));
    this.#searchedBytes = headEndAt < 0 ? held.length : headEndAt;
    const whole = headEndAt < 0 ? held : held.subarray(0, headEndAt + headEnd.length);
    const end = this.#lines.pieceOf(whole);
    this.#headTail = held.subarray(Math.max(0, end - 2), end).toString("latin1");
    this.#parseUpTo(end, held);
  }

  /** Parses up to the end of a head. Returns true if the rest waits, because the head has no body or is incomplete. */
  #parseHead(held: Buffer): boolean {
    const end = this.#endOfHead(held);
    this.#headTail = end === undefined ? (this.#headTail + held.subarray(-2).toString("latin1")).slice(-2) : "";
    this.#parseUpTo(end ?? held.length, held);
    if (this.#open > 0) return !this.#isInBody;
    this.#deadline ??= this.#clock.after(this.#times.headersMsMax, () => this.#tooLate());
    // The bytes were an empty line, or a head that Node itself refused.
    if (this.#held) this.#rest();
    return true;
  }

  /** Returns the offset after the head's end, which may have begun in earlier bytes. */
  #endOfHead(held: Buffer): number | undefined {
    for (const [before, rest] of [
      ["\n", "\r\n"],
      ["\n\r", "\n"],
    ] as const)
      if (this.#headTail.endsWith(before) && held.subarray(0, rest.length).toString("latin1") === rest)
        return rest.length;
    const end = held.indexOf(headEnd);
    return end < 0 ? undefined : end + headEnd.length;
  }

  #parseUpTo(end: number, held: Buffer): void {
    const isAll = end === held.length;
    this.#searchedBytes = Math.max(0, this.#searchedBytes - end);
    this.#held = isAll ? undefined : held.subarray(end);
    this.#parse(isAll ? held : held.subarray(0, end));
  }

  // These functions are created once per connection, not per request.
  readonly #answered = (): void => {
    this.#open--;
    if (this.#open > 0 || this.#socket.destroyed) return;
    this.#meet(this.#isInBody ? this.#times.discardMs : undefined);
    if (this.#held) this.#rest();
    else if (this.#socket.isPaused()) this.#socket.resume();
  };

  /** Continues with the waiting bytes in the next turn of the event loop. */
  #rest(): void {
    setImmediate(() => {
      if (this.#socket.isPaused()) this.#socket.resume();
      else this.#pump();
    });
  }

  readonly #mustFlush = (): void => {
    const bytes = this.#socket.writableLength;
    if (bytes > 0) this.#meet(this.#times.stallMsMax + bytes / flushedBytesPerMs);
  };

  /** Replaces the deadline. Undefined removes it. */
  #meet(ms: number | undefined): void {
    this.#deadline?.cancel();
    this.#deadline = ms === undefined ? undefined : this.#clock.after(ms, () => this.#socket.destroy());
  }

  /** Reports the timeout with a `clientError`, like Node. */
  #tooLate(): void {
    const error = Object.assign(new Error("the head of a request did not arrive in time"), {
      code: "ERR_HTTP_REQUEST_TIMEOUT",
    });
    if (!this.#server.emit("clientError", error, this.#socket)) this.#socket.destroy();
  }
}
