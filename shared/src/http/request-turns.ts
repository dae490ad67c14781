/**
 * Reads one request at a time from each connection of an HTTP/1.1 server. By itself, Node parses all received bytes and
 * emits every request in them in one turn of the event loop: thousands, if they are short. Here the parser gets one
 * head, then its body; what follows waits in the socket, except for a few KB that show a disconnect. A connection must
 * also make progress: empty lines, an unwanted body or an unread answer do not keep it open. Of a chunked body that nobody
 * reads, only the chunks of one turn are parsed. Read bodies by the event `data`: only the event `resume` goes on.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Clock, Timer } from "../time/clock.ts";
import { LineTurns } from "./line-turns.ts";

export interface TurnTimes {
  /** Time limit of a request's head, from its first byte to its last. */
  readonly headersMsMax: number;
  /** Time limit of the rest of a body after its request is answered. */
  readonly discardMs: number;
  /** For sending an answer that was handed over; one second more for every 25 KB of it. */
  readonly stallMsMax: number;
}

/** The only end of a head that Node's parser accepts. */
const headEnd = "\n\r\n";
/** Most bytes of waiting requests; beyond it the socket is not read. */
const heldBytesMax = 16 << 10;
/** Only the parser knows where a chunked body ends: it gets pieces that end like a head, at least this large. */
const chunkedPieceBytesMin = 1 << 10;
const flushedBytesPerMs = 25;

/** Call before the server gets its first connection. */
export function readOneAtATime(server: Server, clock: Clock, times: TurnTimes): void {
  const turnsOf = new WeakMap<Socket, RequestTurns>();
  const lines = new LineTurns();
  // After Node's own listener, which has just begun to read.
  server.on(server instanceof TlsServer ? "secureConnection" : "connection", (socket: Socket) => {
    turnsOf.set(socket, new RequestTurns(socket, server, { clock, times, lines }));
  });
  const begin = (request: IncomingMessage, response: ServerResponse) =>
    turnsOf.get(request.socket)?.begin(request, response);
  server.prependListener("request", begin);
  for (const event of ["checkContinue", "checkExpectation"])
    if (server.listenerCount(event) > 0) server.prependListener(event, begin);
}

/** Node sets the parser as a property of the socket. */
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
  /** So many of them are known to have no end of a head: pieces of short chunks are a hundredth of what waits. */
  #searchedBytes = 0;
  #isPumping = false;
  /** The next piece of a chunked body waits for a later turn of the event loop. */
  #waitsForTurn = false;
  /** The socket was paused here because too much of the body waits. */
  #isHolding = false;
  /** Number of requests whose response is not closed. */
  #open = 0;
  /** The last request that began. Its body may continue after the answer. */
  #request: IncomingMessage | undefined;
  /** Bytes of its body that the parser has not got; undefined: the body is chunked. */
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
    this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
    this.#pump();
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
    if (!this.#held || this.#held.length < heldBytesMax || this.#socket.isPaused()) return;
    this.#isHolding = this.#waitsForTurn;
    this.#socket.pause();
  }

  readonly #waitForTurn = (): void => this.#lines.wait(this.#nextTurn);

  readonly #nextTurn = (): void => {
    this.#waitsForTurn = false;
    if (this.#isHolding) this.#socket.resume();
    this.#isHolding = false;
    // Parses before it returns: the event `resume` comes later, and the turn would have woken every waiter by then.
    this.#pump();
  };

  /** Node reuses the parser for another connection once this one is closed or upgraded. */
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
    // Node itself stops at 64 KB that nobody reads: of chunks of one byte, each of which is a buffer, that is 25 MB.
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

  /** Parses up to the end of a head. True: the rest waits, since the head has no body or is unfinished. */
  #parseHead(held: Buffer): boolean {
    const end = this.#endOfHead(held);
    this.#headTail = end === undefined ? (this.#headTail + held.subarray(-2).toString("latin1")).slice(-2) : "";
    this.#parseUpTo(end ?? held.length, held);
    if (this.#open > 0) return !this.#isInBody;
    this.#deadline ??= this.#clock.after(this.#times.headersMsMax, () => this.#tooLate());
    // An empty line, or a head that Node itself refused.
    if (this.#held) this.#rest();
    return true;
  }

  /** Offset after the head's end in these bytes; the end may have begun in earlier ones. */
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

  // Created once per connection, not per request.
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

  /** Replaces the deadline; undefined: none. */
  #meet(ms: number | undefined): void {
    this.#deadline?.cancel();
    this.#deadline = ms === undefined ? undefined : this.#clock.after(ms, () => this.#socket.destroy());
  }

  /** Reports the timeout as Node does, with a `clientError`. */
  #tooLate(): void {
    const error = Object.assign(new Error("the head of a request did not arrive in time"), {
      code: "ERR_HTTP_REQUEST_TIMEOUT",
    });
    if (!this.#server.emit("clientError", error, this.#socket)) this.#socket.destroy();
  }
}
