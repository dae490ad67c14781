/** Reads bodies: small ones at once, large ones one after the other in a thread, so that no other request waits for them. */
import { asBuffer, ByteThread, ownBytes } from "@weiche/shared/byte-thread.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import type { BodyJob, BodyReply } from "./body-worker.ts";
import { smallBytesMax, type HeldBody } from "./held-body.ts";
import { readRequest } from "./read-request.ts";
import type { RequestFacts } from "./request-schema.ts";

export class BodyReaders implements AsyncDisposable {
  readonly #thread = new ByteThread<BodyJob, BodyReply>(new URL("./body-worker.ts", import.meta.url));

  /** Rejects with an `ApiError` for anything that is wrong with the body itself. */
  async read(path: NodePath, body: HeldBody): Promise<RequestFacts> {
    if (body.bytes!.length <= smallBytesMax) return readRequest(path, body.bytes!);
    const { facts, refused, bytes } = await this.#thread.run({ path, bytes: ownBytes(body.bytes!) });
    if (refused) {
      const { kind, message, param } = refused;
      throw new ApiError(kind, message, param === null ? {} : { param });
    }
    // Handed over, the buffer of before is empty.
    body.bytes = asBuffer(bytes);
    return facts!;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#thread[Symbol.asyncDispose]();
  }
}
