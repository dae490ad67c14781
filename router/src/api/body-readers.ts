/** Reads bodies: small ones at once, large ones in one of two threads, so that no other request waits for them. */
import { Worker } from "node:worker_threads";
import { ApiError } from "@weiche/shared/errors.ts";
import type { NodePath } from "@weiche/shared/node-protocol.ts";
import type { BodyJob, BodyReply } from "./body-worker.ts";
import { readRequest } from "./read-request.ts";
import type { RequestFacts } from "./request-schema.ts";

export interface ReadBody {
  readonly facts: RequestFacts;
  /** The client's bytes as they came; what was given is gone after a thread had it. */
  readonly body: Buffer;
}

interface WaitingJob extends BodyJob {
  readonly resolve: (reply: BodyReply) => void;
  readonly reject: (error: Error) => void;
}

const onMainThreadBytesMax = 1 << 20;
const threadsMax = 2;

export class BodyReaders implements AsyncDisposable {
  readonly #queue: WaitingJob[] = [];
  /** Threads and what each is at. */
  readonly #threads = new Map<Worker, WaitingJob | undefined>();
  #closed = false;

  /** Rejects with an `ApiError` for anything that is wrong with the body itself. */
  async read(path: NodePath, body: Buffer): Promise<ReadBody> {
    if (body.length <= onMainThreadBytesMax) return { facts: readRequest(path, body), body };
    const { facts, refused, bytes } = await this.#inThread(path, ownBytes(body));
    if (refused) {
      const { kind, message, param } = refused;
      throw new ApiError(kind, message, param === null ? {} : { param });
    }
    return { facts: facts!, body: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const job of this.#queue.splice(0)) job.reject(new Error("closed"));
    await Promise.all([...this.#threads.keys()].map((thread) => thread.terminate()));
  }

  #inThread(path: NodePath, bytes: Uint8Array<ArrayBuffer>): Promise<BodyReply> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new Error("closed"));
      this.#queue.push({ path, bytes, resolve, reject });
      if (![...this.#threads.values()].includes(undefined) && this.#threads.size < threadsMax) this.#start();
      this.#next();
    });
  }

  #start(): void {
    const thread = new Worker(new URL("./body-worker.ts", import.meta.url));
    thread.unref();
    this.#threads.set(thread, undefined);
    thread.on("message", (reply: BodyReply) => {
      this.#threads.get(thread)?.resolve(reply);
      this.#threads.set(thread, undefined);
      this.#next();
    });
    // A thread that ends takes its body with it: that request fails, the next one gets a new thread.
    thread.on("error", (error: Error) => this.#threads.get(thread)?.reject(error));
    thread.on("exit", () => {
      this.#threads.get(thread)?.reject(new Error("the thread ended"));
      this.#threads.delete(thread);
      if (this.#queue.length > 0 && !this.#closed) this.#start();
      this.#next();
    });
  }

  #next(): void {
    for (const [thread, job] of this.#threads) {
      if (job) continue;
      const next = this.#queue.shift();
      if (!next) return;
      this.#threads.set(thread, next);
      thread.postMessage({ path: next.path, bytes: next.bytes } satisfies BodyJob, [next.bytes.buffer]);
    }
  }
}

/** Bytes that are alone in their memory, so that it can be handed over. */
function ownBytes(body: Buffer): Uint8Array<ArrayBuffer> {
  const isAlone = body.byteLength === body.buffer.byteLength && body.buffer instanceof ArrayBuffer;
  return isAlone ? new Uint8Array(body.buffer as ArrayBuffer) : new Uint8Array(body);
}
