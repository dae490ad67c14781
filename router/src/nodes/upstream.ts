/** The interface between the API and the data connections: sends one request to one node. */
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
  /** The most tokens, prompt and answers together, that the request may cost. */
  readonly tokensMax: number;
  readonly remainingMs: number;
  /** Number of answers made at the same time; each takes a place of the engine. Default 1. */
  readonly answers?: number;
  /** The client's bytes, unchanged. */
  readonly body: Buffer;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly kind: AnswerKind;
  /** 0: the node does not say when to try again. */
  readonly retryAfterSeconds: number;
  /** What the request waited for in its slot, and how long: `switch 5200`; undefined: for nothing. */
  readonly waited: string | undefined;
  /** What the node estimated for that wait when the request came. Absent: it did not. */
  readonly estimatedMs?: number | undefined;
  readonly body: AnswerBody;
}

export interface AnswerBody {
  /** How the answer ended; valid after its end. */
  readonly ending: AnswerEnding;
  /** Set if the node's engine died during the request; valid after its end. */
  readonly engineDeath: EngineDeath | undefined;
  /** Set if the node or its engine failed, and did not die; valid after its end. */
  readonly nodeFault: NodeFault | undefined;
  /** Call once. Pieces that came before are handed over at once. */
  readInto(reader: AnswerReader): void;
  /** Nothing more is handed over until `resume`, and the node sends no more than a window. */
  pause(): void;
  resume(): void;
  /** Cancels the request at the node. The reader's `end` is called at once. */
  cancel(): void;
}

export interface AnswerReader {
  take(bytes: Buffer): void;
  /** Called once, whether the answer is complete or broken. */
  end(): void;
}

/**
 * `complete`: the answer's END said so. `error`: it said that the answer failed, which its last event or its body tells.
 * `unread`: it said that the client did not read. `broken`: no END came.
 */
export type AnswerEnding = "complete" | "error" | "unread" | "broken";

export interface Upstream {
  /**
   * Sends the request and resolves with the head of the answer. Rejects with `NodeLost` if the node or its connection
   * went before the head came (nothing was billed; another node may be tried), with the signal's reason if it aborts
   * before. Afterwards the signal means nothing: who has the answer cancels it.
   */
  send(node: NodeId, request: UpstreamRequest, signal: EndSignal): Promise<UpstreamResponse>;
}

export class NodeLost extends Error {}
