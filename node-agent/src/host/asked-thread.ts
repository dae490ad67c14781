/**
 * A worker thread that answers one question at a time. The first question starts it. After a thread died, the next
 * question starts another. A thread that does not answer in time is ended. No other thread starts before it is gone, so
 * that threads which the kernel holds do not accumulate.
 *
 *            ask                    answer
 *   none ──────────▶ answering ◀──────────▶ resting
 *    ▲                   │ silent     ask
 *    │ gone              ▼
 *    └─────────────── ending
 */
import { Worker } from "node:worker_threads";
import { within, type Clock, type Timer } from "@weiche/shared/time/clock.ts";

interface AskedThreadOptions {
  readonly clock: Clock;
  /** The worker's module. It replies once to every message. */
  readonly program: URL;
  /** Passed to the module as `workerData`. */
  readonly data?: unknown;
  /** `PATH` of the thread and its children, which get no other variable of the environment. */
  readonly path: string | undefined;
  readonly answerMsMax: number;
  /** The thread died, or was ended because it did not answer. */
  readonly onLost: (reason: string) => void;
}

/** Such a thread uses some megabytes. One that uses far more ends before it harms the agent. */
const heapMebibytesMax = 128;
const youngHeapMebibytesMax = 4;
const closeMsMax = 1_000;

interface Question {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

export class AskedThread<Answer> implements AsyncDisposable {
  readonly #options: AskedThreadOptions;
  #thread: Worker | undefined;
  #question: Question | undefined;
  #deadline: Timer | undefined;
  #isEnding = false;
  #isClosed = false;

  constructor(options: AskedThreadOptions) {
    this.#options = options;
  }

  /**
   * Rejects if the thread dies, does not answer in time, or is still ending. Never settles if this object is closed
   * meanwhile.
   */
  async ask(): Promise<Answer> {
    if (this.#isClosed) throw new Error("closed");
    if (this.#isEnding) throw new Error("the thread that did not answer has not ended yet");
    if (this.#question) throw new Error("the previous question has not been answered yet");
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#question = { resolve, reject };
    const thread = (this.#thread ??= this.#start());
    const { clock, answerMsMax } = this.#options;
    this.#deadline = clock.after(answerMsMax, () => this.#end(thread, `no answer within ${answerMsMax / 1000} s`));
    thread.postMessage("");
    return (await promise) as Answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    this.#thread = undefined;
    this.#deadline?.cancel();
    if (thread) await within(this.#options.clock, closeMsMax, thread.terminate());
  }

  #start(): Worker {
    const { program, data, path } = this.#options;
    const thread = new Worker(program, {
      workerData: data,
      env: { LC_ALL: "C", ...(path === undefined ? {} : { PATH: path }) },
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytesMax, maxYoungGenerationSizeMb: youngHeapMebibytesMax },
    });
    thread.unref();
    thread.on("message", (answer) => this.#settled()?.resolve(answer));
    thread.on("error", (error) => this.#lose(thread, `it died: ${(error as Error).message}`));
    thread.on("exit", (code) => this.#gone(thread, code));
    return thread;
  }

  /**
   * Ends a thread that does not answer. Its question fails at once. Another thread may start once this one has ended.
   */
  #end(thread: Worker, reason: string): void {
    this.#lose(thread, reason);
    void thread.terminate();
  }

  #lose(thread: Worker, reason: string): void {
    if (this.#thread !== thread || this.#isEnding) return;
    this.#isEnding = true;
    this.#options.onLost(reason);
    this.#settled()?.reject(new Error(reason));
  }

  /** Takes the open question, so that it is settled only once. A thread may exit right after its answer. */
  #settled(): Question | undefined {
    const question = this.#question;
    this.#question = undefined;
    this.#deadline?.cancel();
    return question;
  }

  #gone(thread: Worker, code: number): void {
    if (this.#thread !== thread) return;
    if (code !== 0 || this.#question) this.#lose(thread, `it ended with code ${code}`);
    this.#thread = undefined;
    this.#isEnding = false;
  }
}
