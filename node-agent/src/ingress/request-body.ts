/** The body of a request: bounded in size and in depth before anything is made of it. */
import type { ServerHttp2Stream } from "node:http2";
import { ApiError } from "@weiche/shared/errors.ts";
import { isObject, type Json } from "../engines/dialects/json.ts";

export const bodyBytesMax = 20 << 20;
export const jsonDepthMax = 64;

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

export function parseBody(bytes: Buffer): Json {
  if (isDeep(bytes)) throw new ApiError("invalid_request", `The body is nested deeper than ${jsonDepthMax} levels.`);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    throw new ApiError("invalid_request", "The body is not valid JSON."); // its own message would quote the body
  }
  if (!isObject(value)) throw new ApiError("invalid_request", "The body must be a JSON object.");
  return value;
}

const [quote, backslash, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** Looks at the bytes alone: a parser, and llama.cpp's more so, may not survive what it would find. */
function isDeep(bytes: Buffer): boolean {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) at = endOfString(bytes, at + 1);
    else if (byte === openBracket || byte === openBrace) {
      if (++depth > jsonDepthMax) return true;
    } else if (byte === closeBracket || byte === closeBrace) depth--;
  }
  return false;
}

function endOfString(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}
