/** A thread of its own for work on large buffers: one job after the other. Bytes come and go by transfer, never copied. */
import { Worker } from "node:worker_threads";

export type OwnBytes = Uint8Array<ArrayBuffer>;

interface WaitingJob<Job, Reply> {
  readonly job: Job;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

export class ByteThread<Job extends { readonly bytes: OwnBytes }, Reply> implements AsyncDisposable {
  readonly #program: URL;
  /** The first one is at work. */
  readonly #jobs: WaitingJob<Job, Reply>[] = [];
  #thread: Worker | undefined;

  /** `program` answers each job with one message. */
  constructor(program: URL) {
    this.#program = program;
  }

  /** The job's bytes are gone with it. Rejects only if the thread ends. */
  run(job: Job): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ job, resolve, reject });
      if (this.#jobs.length === 1) this.#next();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const thread = this.#thread;
    this.#end(new Error("closed"));
    await thread?.terminate();
  }

  #next(): void {
    const first = this.#jobs[0];
    if (!first) return;
    this.#thread ??= this.#start();
    this.#thread.postMessage(first.job, [first.job.bytes.buffer]);
  }

  #start(): Worker {
    const thread = new Worker(this.#program);
    thread.unref();
    thread.on("message", (reply: Reply) => {
      this.#jobs.shift()?.resolve(reply);
      this.#next();
    });
    thread.on("error", (error: Error) => this.#end(error));
    return thread;
  }

  /** A thread that ends takes the bytes with it: their jobs fail, the next one gets a new thread. */
  #end(error: Error): void {
    this.#thread = undefined;
    for (const { reject } of this.#jobs.splice(0)) reject(error);
  }
}

/** Bytes that are alone in their memory, so that it can be handed over. */
export function ownBytes(bytes: Buffer): OwnBytes {
  const isAlone = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
  return isAlone ? new Uint8Array(bytes.buffer as ArrayBuffer) : new Uint8Array(bytes);
}

export function asBuffer({ buffer, byteOffset, byteLength }: OwnBytes): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
