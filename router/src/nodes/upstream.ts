/** The interface between the API and the data connections. It sends one request to one node. */
import type { ModelId, NodeId, RequestId, SlotName } from "@weiche/shared/ids.ts";
import type { AnswerKind, EngineDeath, NodeFault, NodePath } from "@weiche/shared/node-protocol.ts";
import type { BillingIdentity } from "@weiche/shared/usage-record.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";

export interface UpstreamRequest {
  readonly path: NodePath;
  readonly requestId: RequestId;
  readonly attempt: number;
  readonly model: ModelId;
  readonly slot?: SlotName;
  readonly billing: BillingIdentity;
  /** The most tokens that the request may cost, prompt and answers together. */
  readonly tokensMax: number;
  readonly remainingMs: number;
  /** Number of answers that are generated at the same time. Each takes a place of the engine. Defaults to 1. */
  readonly answers?: number;
  /** The bytes of the client's body, unchanged. */
  readonly body: Buffer;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly kind: AnswerKind;
  /** 0 if the node does not return a time. */
  readonly retryAfterSeconds: number;
  /** What the request waited for in its slot and how long, such as `switch 5200`. Undefined if it did not wait. */
  readonly waited: string | undefined;
  /** The node's estimate of that wait when the request arrived. Undefined if it made none. */
  readonly estimatedMs?: number | undefined;
  readonly body: AnswerBody;
}

export interface AnswerBody {
  /** How the answer ended. Valid after its end. */
  readonly ending: AnswerEnding;
  /** Set if the node's engine died during the request. Valid after the answer's end. */
  readonly engineDeath: EngineDeath | undefined;
  /** Set if the node or its engine failed and did not die. Valid after the answer's end. */
  readonly nodeFault: NodeFault | undefined;
  /** Call once. Hands over earlier pieces immediately. */
  readInto(reader: AnswerReader): void;
  /** Stops handing over pieces until `resume`. The node sends at most one window meanwhile. */
  pause(): void;
  resume(): void;
  /** Cancels the request at the node and calls the reader's `end` immediately. */
  cancel(): void;
}

export interface AnswerReader {
  take(bytes: Buffer): void;
  /** Called once, whether the answer is complete or broken. */
  end(): void;
}

/**
 * `complete`: the END frame reports a complete answer. `error`: the END frame reports a failure, which the answer's
 * last event or body describes. `unread`: the END frame reports that the client did not read. `broken`: no END came.
 */
export type AnswerEnding = "complete" | "error" | "unread" | "broken";

export interface Upstream {
  /**
   * Sends the request and resolves with the head of the answer. Rejects with `NodeLost` if the node or its connection
   * was lost before the head. Nothing is billed then, and another node may be tried. Rejects with the signal's reason
   * if the signal aborts before the head. After the head the signal has no effect, and the receiver cancels the answer
   * instead.
   */
  send(node: NodeId, request: UpstreamRequest, signal: EndSignal): Promise<UpstreamResponse>;
}

export class NodeLost extends Error {}
