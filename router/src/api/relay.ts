/**
 * Hands a node's answer to the client: the same bytes, with back-pressure. An answer is whole only with the node's closing
 * trailer. Nothing that is cut may look whole: of a stream only finished events are passed on, so that an error event can
 * always follow; of any other answer the last piece waits for the trailer.
 */
import type { Clock, Timer } from "@weiche/shared/clock.ts";
import { ApiError, asApiError, errorBody } from "@weiche/shared/errors.ts";
import { NodeLost, type UpstreamResponse } from "../nodes/upstream.ts";
import { ClientGone, type Exchange } from "./exchange.ts";

/**
 * Resolves when the answer has ended or was cut. Rejects while a real status is still possible: with `NodeLost` if nothing
 * came of the answer (it may be asked of another node), with the reason of `exchange.signal`, or with an `ApiError`.
 */
export function relay(exchange: Exchange, answer: UpstreamResponse, clock: Clock, stallMsMax: number): Promise<void> {
  const { response, signal } = exchange;
  const { body } = answer;
  const isStream = String(answer.headers["content-type"]).startsWith("text/event-stream");
  const waiting = isStream ? new UnfinishedEvent() : new LastPiece();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let stall: Timer | undefined;
  let received = false;

  body.on("data", onData).once("end", onEnd).once("error", onEnd).once("close", onEnd);
  response.on("drain", onDrain).once("finish", onFinish);
  signal.addEventListener("abort", onAbort);
  exchange.onSettled(() => stall?.cancel());
  if (signal.aborted) onAbort();
  return promise;

  function onData(chunk: Buffer): void {
    received = true;
    const ready = waiting.push(chunk);
    if (ready && !write(ready)) {
      body.pause();
      watchStall();
    }
  }
  function onDrain(): void {
    stall?.cancel();
    body.resume();
  }
  function onEnd(): void {
    detach();
    switch (answer.ending()) {
      case "complete":
        return finish();
      case "error":
        return response.headersSent ? cutAfter(undefined, "broken") : reject(broken());
      case "broken":
        if (response.headersSent) return cutAfter(broken(), "broken");
        return reject(received ? broken() : new NodeLost("the answer ended before it began"));
    }
  }
  /** The client has gone, or the time is over. */
  function onAbort(): void {
    detach();
    body.destroy();
    const reason: unknown = signal.reason;
    if (reason instanceof ClientGone || !response.headersSent) return reject(reason as Error);
    cutAfter(asApiError(reason), "timeout");
  }

  function write(bytes: Buffer): boolean {
    if (!response.headersSent) head();
    exchange.bytesSent += bytes.length;
    return response.write(bytes);
  }
  function finish(): void {
    const { rest } = waiting;
    if (!response.headersSent) head(rest?.length ?? 0);
    exchange.bytesSent += rest?.length ?? 0;
    response.end(rest);
    if (!response.writableFinished) watchStall();
    resolve();
  }
  /** The connection ends without the end of the answer; what was written before still leaves. */
  function cutAfter(error: ApiError | undefined, outcome: "broken" | "timeout"): void {
    exchange.outcome = outcome;
    if (error && isStream) write(errorEvent(error, waiting.torn));
    watchStall();
    // Node gathers what is written within one turn; only then the socket knows of it.
    setImmediate(() => exchange.request.socket.destroySoon());
    resolve();
  }
  function head(length?: number): void {
    exchange.status = 200;
    exchange.firstByteAtMs = clock.monotonicMs();
    response.writeHead(200, {
      ...(isStream ? streamHeaders : jsonHeaders),
      ...(length === undefined || isStream ? {} : { "content-length": length }),
      "x-request-id": exchange.id,
    });
  }
  function onFinish(): void {
    exchange.outcome = "answered";
  }
  function watchStall(): void {
    stall?.cancel();
    stall = clock.after(stallMsMax, () => {
      detach();
      exchange.outcome = "stalled";
      body.destroy();
      exchange.request.socket.destroy();
      resolve();
    });
  }
  function detach(): void {
    body.off("data", onData).off("end", onEnd).off("error", onEnd).off("close", onEnd).on("error", ignore);
    response.off("drain", onDrain);
    signal.removeEventListener("abort", onAbort);
    stall?.cancel();
  }
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};
const jsonHeaders = { "content-type": "application/json; charset=utf-8" };

function broken(): ApiError {
  return new ApiError("internal", "The answer was broken off.");
}

function errorEvent(error: ApiError, torn: boolean): Buffer {
  return Buffer.from(`${torn ? "\n\n" : ""}data: ${JSON.stringify(errorBody(error))}\n\n`);
}

/** What comes of a stream that was given up already. */
function ignore(): void {}

/** A longer event is passed on in pieces; if it is cut, the client sees the stump of it before the error event. */
const eventBytesMax = 256 << 10;
const eventEnd = Buffer.from("\n\n");

/** What has come of an event that is not finished. A node writes whole events; only a long one comes in pieces. */
class UnfinishedEvent {
  rest: Buffer | undefined;
  /** Whether a part of an unfinished event was passed on. */
  torn = false;

  /** Returns what may be passed on. */
  push(chunk: Buffer): Buffer | undefined {
    const bytes = this.rest ? Buffer.concat([this.rest, chunk]) : chunk;
    const last = bytes.length - 1;
    const cut = bytes[last] === 10 && bytes[last - 1] === 10 ? bytes.length : bytes.lastIndexOf(eventEnd) + 2;
    if (cut < 2 && bytes.length <= eventBytesMax) {
      this.rest = bytes;
      return undefined;
    }
    this.torn = cut < 2;
    this.rest = cut < 2 || cut === bytes.length ? undefined : bytes.subarray(cut);
    return this.rest ? bytes.subarray(0, cut) : bytes;
  }
}

/** The piece that came last. */
class LastPiece {
  rest: Buffer | undefined;
  readonly torn = false;

  push(chunk: Buffer): Buffer | undefined {
    const before = this.rest;
    this.rest = chunk;
    return before;
  }
}
