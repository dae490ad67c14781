/**
 * A worker thread for work on large buffers, one job at a time. Owners of jobs take turns, so that nobody waits behind all
 * jobs of another owner. Bytes are transferred, never copied.
 */
import type { EndSignal } from "../time/end-signal.ts";
import { Worker } from "node:worker_threads";

export type OwnBytes = Uint8Array<ArrayBuffer>;

interface WaitingJob<Job, Reply> {
  readonly job: Job;
  readonly owner: string;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

export class ByteThread<Job extends { readonly bytes: OwnBytes }, Reply> implements AsyncDisposable {
  readonly #program: URL;
  /** The first job is running. The others are in the order of their arrival. */
  readonly #jobs: WaitingJob<Job, Reply>[] = [];
  /** The last turn of each owner of waiting jobs. Others have had none. */
  readonly #turns = new Map<string, number>();
  #turn = 0;
  #thread: Worker | undefined;
  #isClosed = false;

  /** `program` is the worker's module. It replies once to every job. */
  constructor(program: URL) {
    this.#program = program;
  }

  /**
   * Transfers the job's bytes to the thread. Rejects if the thread ends during the job, or with the signal's reason if
   * the job has not begun. An abort does not interrupt a running job, so that its bytes are free when the promise
   * settles.
   */
  run(job: Job, signal: EndSignal, owner = ""): Promise<Reply> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#isClosed) throw new Error("closed");
      const settled = () => signal.removeEventListener("abort", leave);
      const waiting: WaitingJob<Job, Reply> = {
        ...{ job, owner },
        resolve: (reply) => (settled(), resolve(reply)),
        reject: (error) => (settled(), reject(error)),
      };
      const leave = () => {
        const place = this.#jobs.indexOf(waiting);
        if (place > 0) this.#jobs.splice(place, 1)[0]!.reject(signal.reason as Error);
      };
      signal.addEventListener("abort", leave);
      this.#jobs.push(waiting);
      if (this.#jobs.length === 1) this.#next();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    this.#thread = undefined;
    for (const { reject } of this.#jobs.splice(0)) reject(new Error("closed"));
    await thread?.terminate();
  }

  #next(): void {
    for (let first = this.#chooseFirst(); first; first = this.#chooseFirst()) {
      try {
        this.#thread ??= this.#start();
        return this.#thread.postMessage(first.job, [first.job.bytes.buffer]);
      } catch (error) {
        this.#jobs.shift()!.reject(error as Error);
      }
    }
  }

  /** Puts the oldest job of the owner whose last turn was longest ago in the first place. */
  #chooseFirst(): WaitingJob<Job, Reply> | undefined {
    const turnOf = ({ owner }: WaitingJob<Job, Reply>) => this.#turns.get(owner) ?? 0;
    const first = this.#jobs.reduce<WaitingJob<Job, Reply> | undefined>(
      (best, each) => (best === undefined || turnOf(each) < turnOf(best) ? each : best),
      undefined,
    );
    if (first === undefined) {
      this.#turns.clear();
      return undefined;
    }
    this.#jobs.splice(this.#jobs.indexOf(first), 1);
    this.#jobs.unshift(first);
    this.#turns.set(first.owner, ++this.#turn);
    return first;
  }

  #start(): Worker {
    const thread = new Worker(this.#program);
    thread.unref();
    thread.on("message", (reply: Reply) => {
      this.#jobs.shift()?.resolve(reply);
      this.#next();
    });
    thread.on("error", (error: Error) => this.#lose(thread, error));
    thread.on("exit", () => this.#lose(thread, new Error("the thread ended")));
    return thread;
  }

  /** A thread that ends loses the bytes of its job. That job fails, and a new thread runs the other jobs. */
  #lose(thread: Worker, error: Error): void {
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    this.#jobs.shift()?.reject(error);
    this.#next();
  }
}

/** No pool of small buffers is larger than this. */
const poolBytesMax = 1 << 20;

/**
 * Returns bytes that own their memory, so that it can be transferred. Copies bytes that share their memory. If the
 * bytes begin at the start of their buffer and are more than a megabyte, they count as the owner of the buffer. The
 * caller must not have shared the rest of that buffer.
 */
export function ownBytes(bytes: Buffer): OwnBytes {
  const { buffer, byteOffset, byteLength } = bytes;
  const isAlone = byteOffset === 0 && (byteLength === buffer.byteLength || byteLength > poolBytesMax);
  return isAlone && buffer instanceof ArrayBuffer ? new Uint8Array(buffer, 0, byteLength) : new Uint8Array(bytes);
}

export function asBuffer({ buffer, byteOffset, byteLength }: OwnBytes): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
