/** The worker thread that parses large bodies. Bytes are transferred to it and back, never copied. */
import { parentPort, type Transferable } from "node:worker_threads";
import { ApiError, asApiError, type ApiErrorKind } from "@weiche/shared/errors.ts";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import { readRequest, type ReadRequest } from "../read-request.ts";

export interface BodyJob {
  readonly path: NodePath;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface BodyReply {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly facts?: ReadRequest;
  readonly refused?: { readonly kind: ApiErrorKind; readonly message: string; readonly param: string | null };
}

parentPort?.on("message", ({ path, bytes }: BodyJob) => {
  const transfer: Transferable[] = [bytes.buffer];
  parentPort?.postMessage({ ...read(path, bytes), bytes } satisfies BodyReply, transfer);
});

function read(path: NodePath, bytes: Uint8Array<ArrayBuffer>): Omit<BodyReply, "bytes"> {
  try {
    return { facts: readRequest(path, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { kind, message, param } = asApiError(error);
    return { refused: { kind, message, param } };
  }
}
