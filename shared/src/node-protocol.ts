/**
 * Requests and answers on data connections between router and agent. How they travel: frames/README.md, which also explains
 * each field of the records here.
 */
import { parseJson } from "./json.ts";

/** The ALPN name of the protocol, and its version. */
export const dataAlpn = "weiche-data/1";

/** Describes a request. Later versions add fields at the end. */
export type RequestRecord = readonly [
  path: NodePath,
  requestId: string,
  attempt: number,
  model: string,
  /** The slot that the placement chose; "": none. */
  slot: string,
  account: string,
  user: string,
  key: string,
  /** Millicredits per token. */
  factor: number,
  /** The most tokens, prompt and answers together, that the attempt may cost. */
  tokensMax: number,
  /** The routers' signature over what the attempt may be billed to: base64url, opaque to the agent. */
  grant: string,
  /** Time left of the request's 600 s; a duration, since clocks differ. */
  remainingMs: number,
  /** The router's id, as in its welcome. */
  router: string,
  bodyBytes: number,
  /** 1: the router reads DONE frames. Older routers would close the connection on which one comes. */
  readsDone?: number,
];

/** Begins an answer. `text` is used in answers to questions only. */
export type AnswerKind = "events" | "json" | "text";
export type AnswerRecord = readonly [
  status: number,
  kind: AnswerKind,
  /** 0: not said. */
  retryAfterSeconds: number,
  /** What the request waited for in its slot, and how many ms; "": it did not wait. */
  waited: string,
  /** How many ms the node estimated for that wait when the request came; absent or 0: it did not. */
  estimatedMs?: number,
];

/** The fields of a record; none if the text is no record. */
export function readRecord(text: string): readonly unknown[] {
  const value = parseJson(text);
  return Array.isArray(value) ? value : [];
}

/** The engine died during an attempt. `alone`: nothing else ran on it. `shared`: other requests may have been the cause. */
export type EngineDeath = "alone" | "shared";

/**
 * An attempt failed: by the engine or the agent (`node-failed`), because the engine hung, went or gave up after output
 * (`engine-lost`), which the request may have caused, or because the agent had no room of its own and did not ask the
 * engine (`node-busy`).
 */
export type NodeFault = "node-failed" | "engine-lost" | "node-busy";

/** First request on a new data session: the agent answers with a `NodeIdentity` as JSON. */
export const identityPath = "/weiche/identity";

export interface NodeIdentity {
  readonly node: string;
  readonly bootId: string;
}

/** An agent answers with its metrics, so that a router can hand them to a scraper that does not reach the agent. */
export const metricsPath = "/weiche/metrics";

/** An agent answers with its `NodeRequest`s as JSON, the oldest first, for operators who look at running requests. */
export const requestsPath = "/weiche/requests";
/** More are not listed. */
export const nodeRequestsMax = 2_000;

/** A request that an agent serves. Nothing of its content. */
export interface NodeRequest {
  readonly requestId: string;
  readonly attempt: number;
  readonly model: string;
  /** The slot that runs it; absent while it waits. */
  readonly slot?: string;
  /** `reading`: its body comes or is checked. `waiting`: for a switch, or for a place of the engine. */
  readonly state: "reading" | "waiting" | "answering";
  /** Tokens of the answer so far. */
  readonly completionTokens: number;
  /** Since the first token. */
  readonly generatingMs?: number;
  /** While it waits in a slot: 1 is the next one for its model there. */
  readonly position?: number;
  /** Estimated time until it is served; while it waits. */
  readonly estimateMs?: number;
}

export type WaitedFor = "switch" | "place";

export function waitedText(waitedFor: WaitedFor, ms: number): string {
  return `${waitedFor} ${Math.round(ms)}`;
}

/** Returns a value that is well-formed. */
export function readWaited(value: unknown): string | undefined {
  return typeof value === "string" && /^(switch|place) \d{1,9}$/.test(value) ? value : undefined;
}

/** Paths that an agent serves; the router maps its public paths to them. */
export const nodePaths = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
} as const;

export type NodePath = (typeof nodePaths)[keyof typeof nodePaths];

/** One data session at first, and another for every so many open streams, up to `sessionsMax`. */
export const streamsPerSession = 250;
export const sessionsMax = 8;
