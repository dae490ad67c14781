/** The body of a request: bounded in size, depth and number of values before anything is made of it. */
import type { ServerHttp2Stream } from "node:http2";
import { ApiError } from "@weiche/shared/errors.ts";
import { notJson, scanJson, type JsonScan } from "@weiche/shared/http/json-guard.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";

export const bodyBytesMax = 20 << 20;

/** Rejects with the signal's reason if the stream ends before the body does. */
export async function readBody(stream: ServerHttp2Stream, signal: AbortSignal): Promise<Buffer> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onAbort = () => reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes <= bodyBytesMax) return;
    chunks.length = 0; // what still comes is read and forgotten
    reject(new ApiError("invalid_request", "The body is too large."));
  });
  stream.once("end", () => {
    // An end without all of it: the signal follows.
    if (stream.aborted) return;
    signal.removeEventListener("abort", onAbort);
    resolve(Buffer.concat(chunks));
  });
  return promise;
}

/** `scan`: what `scanJson` found in these bytes, if they were scanned already. */
export function parseBody(bytes: Buffer, scan: JsonScan = scanJson(bytes)): Json {
  if ("problem" in scan) throw new ApiError("invalid_request", scan.problem);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    throw new ApiError("invalid_request", notJson); // its own message would quote the body
  }
  if (!isObject(value)) throw new ApiError("invalid_request", "The body must be a JSON object.");
  return value;
}
