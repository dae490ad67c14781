/** Reads bodies: small ones at once, large ones one after the other in a thread, so that no other request waits for them. */
import { Worker } from "node:worker_threads";
import { ApiError } from "@weiche/shared/errors.ts";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import type { BodyJob, BodyReply } from "./body-worker.ts";
import { smallBytesMax, type HeldBody } from "./held-body.ts";
import { readRequest } from "./read-request.ts";
import type { RequestFacts } from "./request-schema.ts";

interface WaitingJob extends BodyJob {
  readonly resolve: (reply: BodyReply) => void;
  readonly reject: (error: Error) => void;
}

export class BodyReaders implements AsyncDisposable {
  /** The first one is at work. */
  readonly #jobs: WaitingJob[] = [];
  #thread: Worker | undefined;

  /** Rejects with an `ApiError` for anything that is wrong with the body itself. */
  async read(path: NodePath, body: HeldBody): Promise<RequestFacts> {
    if (body.bytes!.length <= smallBytesMax) return readRequest(path, body.bytes!);
    const { facts, refused, bytes } = await this.#inThread(path, ownBytes(body.bytes!));
    if (refused) {
      const { kind, message, param } = refused;
      throw new ApiError(kind, message, param === null ? {} : { param });
    }
    // Handed over, the buffer of before is empty.
    body.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return facts!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const thread = this.#thread;
    this.#end(new Error("closed"));
    await thread?.terminate();
  }

  #inThread(path: NodePath, bytes: Uint8Array<ArrayBuffer>): Promise<BodyReply> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ path, bytes, resolve, reject });
      if (this.#jobs.length === 1) this.#next();
    });
  }

  #next(): void {
    const job = this.#jobs[0];
    if (!job) return;
    this.#thread ??= this.#start();
    this.#thread.postMessage({ path: job.path, bytes: job.bytes } satisfies BodyJob, [job.bytes.buffer]);
  }

  #start(): Worker {
    const thread = new Worker(new URL("./body-worker.ts", import.meta.url));
    thread.unref();
    thread.on("message", (reply: BodyReply) => {
      this.#jobs.shift()?.resolve(reply);
      this.#next();
    });
    thread.on("error", (error: Error) => this.#end(error));
    return thread;
  }

  /** A thread that ends takes the bodies with it: their requests fail, the next one gets a new thread. */
  #end(error: Error): void {
    this.#thread = undefined;
    for (const job of this.#jobs.splice(0)) job.reject(error);
  }
}

/** Bytes that are alone in their memory, so that it can be handed over. */
function ownBytes(body: Buffer): Uint8Array<ArrayBuffer> {
  const isAlone = body.byteLength === body.buffer.byteLength && body.buffer instanceof ArrayBuffer;
  return isAlone ? new Uint8Array(body.buffer as ArrayBuffer) : new Uint8Array(body);
}
