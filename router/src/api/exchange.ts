/**
 * A request of a client and its answer. It is settled once: when the answer is closed, for any reason, or when a refusal is
 * written. Then all its resources (a place, a timer, a stream) are released.
 */
import { EndController, type EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { IncomingMessage } from "node:http";
import type { Clock } from "@weiche/shared/time/clock.ts";
import {
  asId,
  uuidv7,
  uuidv7TimeMs,
  type AccountId,
  type KeyId,
  type ModelId,
  type NodeId,
  type RequestId,
  type SlotName,
  type UserId,
} from "@weiche/shared/ids.ts";
import type { Identity } from "../callers/caller.ts";
import type { AnswerSink } from "../edge/answer-sink.ts";
import type { RefusalCode, RefusalWord } from "../usage/refusal-codes.ts";
import type { EndedOutcome } from "../usage/requests/outcomes.ts";

export type Endpoint = "chat" | "completions" | "embeddings" | "models" | "other";

/**
 * `answered`: the whole answer was sent. `refused`: an error was sent. `client-gone`: the client left before the end of
 * its answer. `broken`, `timeout`, `stalled`: the answer was cut after its first byte, because the node was lost, the
 * time limit was reached, or the client did not read.
 */
export type Outcome = EndedOutcome;

/** A node to which a request was sent. Times are in ms since the request began. */
export interface TriedNode {
  readonly node: NodeId;
  readonly slot: SlotName | undefined;
  readonly sentMs: number;
  /** When the node answered, refused or was lost. */
  repliedMs?: number;
  /** `answered`, `lost`, or the code of the node's error. */
  result?: string;
  /**
   * The reason and the milliseconds of its wait in the slot, as the node reports them: `switch 5200`. Undefined if it
   * did not wait.
   */
  waited?: string;
  /** The node's estimate of that wait when the request arrived. */
  estimatedMs?: number;
}

export interface FinishedRequest {
  readonly requestId: RequestId;
  readonly endpoint: Endpoint;
  readonly outcome: Outcome;
  /** 0 if no status was sent. */
  readonly status: number;
  /** `code` of the error body; undefined for answers and pages. */
  readonly errorCode?: string;
  /** The code under which a refused request is counted. */
  readonly refusal?: RefusalWord;
  /** The model's id in the catalogue, never the client's text. */
  readonly model?: ModelId;
  readonly accountId?: AccountId;
  readonly userId?: UserId;
  readonly keyId?: KeyId;
  readonly attempts: number;
  readonly tried: readonly TriedNode[];
  /** Wall time in ms. */
  readonly endedAtMs: number;
  readonly durationMs: number;
  readonly firstByteMs?: number;
  readonly bytesSent: number;
}

export interface ApiEvents {
  requestFinished(facts: FinishedRequest): void;
  /** A request of a known key was refused. */
  requestRefused(of: Identity, code: RefusalCode): void;
  /** A bug; the answer is 500 or a cut connection. */
  requestFailed(requestId: RequestId, error: unknown): void;
  /** An address opened more connections than its limit. */
  connectionRefused(): void;
  /** A trusted proxy wrote an entry without an address into `X-Forwarded-For`. */
  forwardedUnread(proxy: string, entry: string): void;
}

/** The reason of an abort when the client has left. Then no answer is written. */
export class ClientGone extends Error {}

export class Exchange {
  readonly id: RequestId;
  readonly endpoint: Endpoint;
  readonly request: IncomingMessage;
  readonly sink: AnswerSink;
  readonly startedAtMs: number;
  // The fields below are facts for the event at the exchange's end.
  /** The initial value: if an exchange closes before its outcome is set, its client has left. */
  outcome: Outcome = "client-gone";
  status = 0;
  errorCode: string | undefined;
  refusal: RefusalWord | undefined;
  model: ModelId | undefined;
  identity: Identity | undefined;
  readonly tried: TriedNode[] = [];
  firstByteAtMs: number | undefined;
  bytesSent = 0;
  /** True if the stopping router cuts the client off. */
  isCutByUs = false;
  #settled = false;
  readonly #onSettled: (() => void)[] = [];
  readonly #onClosed: (() => void)[] = [];
  readonly #controller = new EndController();
  /** True while the client waits for `100 Continue`. */
  #mustContinue: boolean;

  constructor(endpoint: Endpoint, request: IncomingMessage, sink: AnswerSink, clock: Clock) {
    this.id = asId<RequestId>(uuidv7(clock));
    this.endpoint = endpoint;
    this.request = request;
    this.sink = sink;
    this.startedAtMs = clock.monotonicMs();
    this.#mustContinue = request.headers.expect?.toLowerCase() === "100-continue";
    sink.onClosed((isWhole) => this.#close(isWhole));
  }

  /** Calls back once when the exchange is settled, immediately if it already is. */
  onSettled(callback: () => void): void {
    if (this.#settled) callback();
    else this.#onSettled.push(callback);
  }

  settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    if (this.outcome === "client-gone") this.abort(new ClientGone());
    for (const callback of this.#onSettled) callback();
  }

  /** Calls back once nothing more can be written. */
  onClosed(callback: () => void): void {
    this.#onClosed.push(callback);
  }

  #close(isWhole: boolean): void {
    if (isWhole && !this.#settled) this.outcome = "answered";
    this.settle();
    for (const callback of this.#onClosed) callback();
  }

  /** Wall time of the acceptance. It determines billing period and factor. */
  get acceptedAtMs(): number {
    return uuidv7TimeMs(this.id);
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Aborts when the answer is no longer needed, with `ClientGone` or the `ApiError` of the time limit. */
  get signal(): EndSignal {
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  /** Sends `100 Continue` to a client that waits for it. */
  continue(): void {
    if (this.#mustContinue) this.sink.askForBody?.();
    this.#mustContinue = false;
  }

  /** True while the client is sending its body. */
  get bodyPending(): boolean {
    const { headers, complete } = this.request;
    if (complete || this.#mustContinue) return false;
    return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
  }

  get attempts(): number {
    return this.tried.length;
  }

  finishedAt(nowMs: number, endedAtMs: number): FinishedRequest {
    const { endpoint, outcome, status, errorCode, refusal, model, attempts, tried, bytesSent } = this;
    const { identity, firstByteAtMs } = this;
    return {
      ...{ requestId: this.id, endpoint, outcome, status, errorCode, refusal, model, attempts, tried, bytesSent },
      endedAtMs,
      accountId: identity?.accountId,
      userId: identity?.userId,
      keyId: identity?.keyId,
      durationMs: nowMs - this.startedAtMs,
      firstByteMs: firstByteAtMs === undefined ? undefined : firstByteAtMs - this.startedAtMs,
    };
  }
}
