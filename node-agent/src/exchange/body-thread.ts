/** The thread that parses heavy bodies and, once the engine is known, writes the body for it. */
import { parentPort } from "node:worker_threads";
import { asBuffer, ownBytes, type OwnBytes } from "@weiche/shared/http/byte-thread.ts";
import { ApiError, type ApiErrorKind } from "@weiche/shared/errors.ts";
import { dialects } from "../engines/dialects/all.ts";
import type { DialectName } from "../engines/engine.ts";
import type { EmbeddingRequest } from "../intake/embedding-request.ts";
import { factsOf, readRequest, say, type BodyScope, type PromptFacts } from "../intake/read-request.ts";

export interface BodyJob {
  readonly scope: BodyScope;
  readonly bytes: OwnBytes;
  /** If undefined, the body is only parsed. */
  readonly dialect?: DialectName;
  /** Used only with `dialect`. */
  readonly cacheSalt?: string;
}

export interface BodyReply {
  /** The received body or, with `dialect`, the body for the engine. */
  readonly bytes: OwnBytes;
  readonly read?: PromptFacts | EmbeddingRequest;
  readonly refused?: { readonly kind: ApiErrorKind; readonly message: string; readonly param: string | null };
}

parentPort?.on("message", (job: BodyJob) => {
  const reply = work(job);
  parentPort?.postMessage(reply, [reply.bytes.buffer]);
});

function work({ scope, bytes, dialect, cacheSalt }: BodyJob): BodyReply {
  try {
    const request = readRequest(scope, asBuffer(bytes));
    if (request.kind === "embedding") return { bytes, read: request };
    if (dialect === undefined) return { bytes, read: factsOf(request) };
    return { bytes: ownBytes(say(request, { dialect: dialects[dialect], dialectName: dialect, cacheSalt })) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { kind, message, param } = error;
    return { bytes, refused: { kind, message, param } };
  }
}
