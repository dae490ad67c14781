/** Reads a request's body into memory: bounded in size, and in time however it trickles. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Clock } from "@weiche/shared/clock.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { PageRefusal } from "../gateway/html-pages.ts";
import { ClientGone, type Exchange } from "./exchange.ts";

export const bodyBytesMax = 20 << 20;

export interface BodyTimes {
  readonly bodyMsMax: number;
  /** Each so many bytes received give one second more. */
  readonly bytesPerExtraSecond: number;
}

/** Most bytes that the body may have, by the headers alone; refuses what they already rule out. */
export function expectedBytes({ headers }: IncomingMessage): number {
  const announced = headers["content-length"];
  // Without a length it may become as large as any.
  const bytes = announced === undefined ? bodyBytesMax : Number(announced);
  if (bytes > bodyBytesMax) throw new PageRefusal(413);
  requireJson(headers);
  return bytes;
}

export async function readBody(exchange: Exchange, times: BodyTimes, clock: Clock): Promise<Buffer> {
  const { request } = exchange;
  const announced = request.headers["content-length"];
  // Who left while another line was waited for will not send it.
  exchange.signal.throwIfAborted();
  exchange.continue();
  return new Promise((resolve, reject) => {
    const collector = new Collector(announced === undefined ? undefined : Number(announced));
    const startedAtMs = clock.monotonicMs();
    let timer = clock.after(times.bodyMsMax, onDeadline);
    request.on("data", onData).once("end", onEnd).once("close", onClose);

    function onData(chunk: Buffer): void {
      collector.add(chunk);
      if (collector.bytes > bodyBytesMax) fail(new PageRefusal(413));
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

/** A large body of known length is copied into its place as it comes, so that it is never in memory twice. */
class Collector {
  bytes = 0;
  readonly #expected: number | undefined;
  readonly #chunks: Buffer[] = [];
  #whole: Buffer | undefined;

  constructor(expected: number | undefined) {
    this.#expected = expected;
  }

  add(chunk: Buffer): void {
    if (this.#expected === undefined || chunk.length === this.#expected) this.#chunks.push(chunk);
    else {
      this.#whole ??= Buffer.allocUnsafeSlow(this.#expected);
      chunk.copy(this.#whole, this.bytes);
    }
    this.bytes += chunk.length;
  }

  whole(): Buffer {
    return this.#whole ?? (this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks));
  }
}
