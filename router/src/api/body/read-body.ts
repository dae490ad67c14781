/** Reads a request's body into memory: bounded in size, and in time however it trickles. */
import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { lightBytesMax } from "@weiche/shared/http/json-guard.ts";
import { PageRefusal } from "../../edge/html-pages.ts";
import { ClientGone, type Exchange } from "../exchange.ts";
import { smallBytesMax, type HeldBody } from "./held-body.ts";

export const bodyBytesMax = 20 << 20;

export interface BodyTimes {
  readonly bodyMsMax: number;
  /** Received bytes that extend the deadline by one second. */
  readonly bytesPerExtraSecond: number;
}

/** Reads the body into `held`. Throws before the first byte if the headers alone rule the request out. */
export async function readBody(exchange: Exchange, held: HeldBody, times: BodyTimes, clock: Clock): Promise<void> {
  const { headers } = exchange.request;
  const announced = headers["content-length"];
  const bytes = announced === undefined ? undefined : Number(announced);
  if (bytes !== undefined && bytes > bodyBytesMax) throw new PageRefusal("body_too_large");
  requireJson(headers);
  await held.reserve(bytes ?? 0);
  // A client that left while this waited for room sends no body.
  exchange.signal.throwIfAborted();
  exchange.continue();
  held.fill(await receive(exchange, bytes, held, times, clock));
}

function receive(
  exchange: Exchange,
  announced: number | undefined,
  held: HeldBody,
  times: BodyTimes,
  clock: Clock,
): Promise<Buffer> {
  const { request } = exchange;
  return new Promise((resolve, reject) => {
    const collector = new Collector(announced);
    let startedAtMs = clock.monotonicMs();
    let hasRoom = announced !== undefined;
    let timer = clock.after(times.bodyMsMax, onDeadline);
    request.on("data", onData).once("end", onEnd).once("close", onClose);

    function onData(chunk: Buffer): void {
      collector.add(chunk);
      if (collector.bytes > bodyBytesMax) return fail(new PageRefusal("body_too_large"));
      if (collector.bytes <= lightBytesMax) return;
      // Without a pause Node reads up to 2 MB of a connection in one turn of the event loop: 140 ms with 40 connections.
      request.pause();
      if (hasRoom || collector.bytes <= smallBytesMax) setImmediate(() => request.resume());
      else void waitForRoom();
    }
    /** A body without a length reserves room for the largest one, once it is no longer small. */
    async function waitForRoom(): Promise<void> {
      hasRoom = true;
      timer.cancel();
      const sinceMs = clock.monotonicMs();
      try {
        await held.reserve(bodyBytesMax);
        exchange.signal.throwIfAborted();
        collector.makePlace(bodyBytesMax);
        startedAtMs += clock.monotonicMs() - sinceMs;
        onDeadline();
        request.resume();
      } catch (error) {
        fail(error as Error);
      }
    }
    function onEnd(): void {
      stop();
      resolve(collector.whole());
    }
    function onClose(): void {
      fail(new ClientGone());
    }
    function onDeadline(): void {
      const allowedMs = times.bodyMsMax + (collector.bytes / times.bytesPerExtraSecond) * 1_000;
      const leftMs = Math.ceil(startedAtMs + allowedMs - clock.monotonicMs());
      if (leftMs > 0) timer = clock.after(leftMs, onDeadline);
      else fail(new ApiError("invalid_request", "The body did not arrive in time."));
    }
    function fail(error: Error): void {
      stop();
      reject(error);
    }
    function stop(): void {
      timer.cancel();
      request.off("data", onData).off("end", onEnd).off("close", onClose);
    }
  });
}

function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"]?.split(";", 1)[0]!.trim().toLowerCase();
  if (type !== "application/json")
    throw new ApiError("invalid_request", "The header Content-Type must be application/json.");
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity") throw new ApiError("invalid_request", "A body with a Content-Encoding is not accepted.");
}

/** Gathers the pieces of a body. A large one is copied to its final memory at once, so that it is never held twice. */
class Collector {
  bytes = 0;
  readonly #expected: number | undefined;
  #chunks: Buffer[] = [];
  #whole: Buffer | undefined;

  constructor(expected: number | undefined) {
    this.#expected = expected;
  }

  add(chunk: Buffer): void {
    if (this.#expected !== undefined && chunk.length < this.#expected)
      this.#whole ??= Buffer.allocUnsafeSlow(this.#expected);
    if (this.#whole) chunk.copy(this.#whole, this.bytes);
    else this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }

  /** Allocates the final memory of a body without a length. The system provides pages only once they are written to. */
  makePlace(bytesMax: number): void {
    this.#whole = Buffer.allocUnsafeSlow(bytesMax);
    Buffer.concat(this.#chunks).copy(this.#whole);
    this.#chunks = [];
  }

  whole(): Buffer {
    if (this.#whole) return this.#whole.subarray(0, this.bytes);
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
  }
}
