/** Parses bodies: light ones at once, others one after the other in a worker thread, so that no other request waits. */
import { ByteThread } from "@weiche/shared/http/byte-thread.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import { scanLight } from "@weiche/shared/http/json-guard.ts";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { BodyJob, BodyReply } from "./body-worker.ts";
import type { HeldBody } from "./held-body.ts";
import { readRequest, type ReadRequest } from "../read-request.ts";

export class BodyReaders implements AsyncDisposable {
  readonly #thread = new ByteThread<BodyJob, BodyReply>(new URL("./body-worker.ts", import.meta.url));

  /** Parses a body. Rejects with an `ApiError` if it is invalid, or with the signal's reason. */
  async read(path: NodePath, body: HeldBody, signal: EndSignal): Promise<ReadRequest> {
    const scan = scanLight(body.bytes!);
    if (scan) return readRequest(path, body.bytes!, scan);
    let reply: BodyReply | undefined;
    try {
      reply = await this.#thread.run({ path, bytes: body.lend() }, signal, body.accountId);
    } finally {
      body.takeBack(reply?.bytes);
    }
    signal.throwIfAborted();
    const { facts, refused } = reply;
    if (!refused) return facts!;
    const { kind, message, param } = refused;
    throw new ApiError(kind, message, { param });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#thread[Symbol.asyncDispose]();
  }
}
