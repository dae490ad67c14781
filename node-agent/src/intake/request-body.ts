/** Reads the body of a request, bounded in size, depth and number of values before it is parsed. */
import type { ServerHttp2Stream } from "node:http2";
import { ApiError } from "@weiche/shared/errors.ts";
import { notJson, scanJson, type JsonScan } from "@weiche/shared/http/json-guard.ts";
import { isObject, parseJson, type Json } from "@weiche/shared/json.ts";

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
    // The stream was cut off: the signal aborts next.
    if (stream.aborted) return;
    signal.removeEventListener("abort", onAbort);
    resolve(Buffer.concat(chunks));
  });
  return promise;
}

/** `scan`: the result of `scanJson` for these bytes, if there is one already. */
export function parseBody(bytes: Buffer, scan: JsonScan = scanJson(bytes)): Json {
  if ("problem" in scan) throw new ApiError("invalid_request", scan.problem);
  const value = parseJson(bytes.toString());
  if (value === undefined) throw new ApiError("invalid_request", notJson);
  if (!isObject(value)) throw new ApiError("invalid_request", "The body must be a JSON object.");
  return value;
}
