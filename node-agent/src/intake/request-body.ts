/** Receives the body of a request. Its size, depth and number of values are limited before it is parsed. */
import { ApiError } from "@weiche/shared/errors.ts";
import { mendTexts, notJson, scanJson, type JsonScan } from "@weiche/shared/http/json-guard.ts";
import { parseKept } from "@weiche/shared/http/kept-json.ts";
import { isObject, parseJson, type Json } from "@weiche/shared/json.ts";

export const bodyBytesMax = 20 << 20;

/** A body of an announced length. */
export class IncomingBody {
  readonly whole: Promise<Buffer>;
  readonly fail: (reason: Error) => void;
  readonly #bytes: Buffer;
  readonly #resolve: (bytes: Buffer) => void;
  #received = 0;

  constructor(announcedBytes: number) {
    if (announcedBytes > bodyBytesMax) throw new ApiError("invalid_request", "The body is too large.");
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    this.whole = promise;
    this.#resolve = resolve;
    this.fail = reject;
    this.#bytes = Buffer.allocUnsafe(announcedBytes);
  }

  take(piece: Buffer): void {
    this.#received += piece.length;
    if (this.#received > this.#bytes.length) this.fail(new Error("the body is longer than the router announced"));
    else piece.copy(this.#bytes, this.#received - piece.length);
  }

  end(): void {
    if (this.#received === this.#bytes.length) this.#resolve(this.#bytes);
    else this.fail(new Error("the body is not as long as the router announced"));
  }
}

interface ParsedBody {
  readonly value: Json;
  /** The same body, with the names and numbers of schemas and the seed as `parseKept` marks them. */
  readonly kept: Json;
}

/**
 * Parses a body. Invalid texts are mended in the bytes, so that a tool that reads binaries does not end a conversation.
 * `scan`: the result of `scanJson` for these bytes, if known.
 */
export function parseBody(bytes: Buffer, scan: JsonScan = scanJson(bytes)): ParsedBody {
  if ("problem" in scan) throw new ApiError("invalid_request", scan.problem);
  if (scan.brokenText !== undefined) mendTexts(bytes);
  const value = parseJson(bytes.toString());
  if (value === undefined) throw new ApiError("invalid_request", notJson);
  if (!isObject(value)) throw new ApiError("invalid_request", "The body must be a JSON object.");
  return { value, kept: scan.kept.length === 0 ? value : (parseKept(bytes, scan) as Json) };
}
