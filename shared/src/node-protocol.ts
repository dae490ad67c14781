/**
 * Requests and answers on data connections between router and agent. frames/README.md explains how they travel, and
 * each field of these records.
 */
import { parseJson } from "./json.ts";

/** The protocol's ALPN name, with its version. */
export const dataAlpn = "weiche-data/1";

/** Describes a request. Later versions add fields at the end. */
export type RequestRecord = readonly [
  path: NodePath,
  requestId: string,
  attempt: number,
  model: string,
  /** The slot that the placement chose, or "". */
  slot: string,
  account: string,
  user: string,
  key: string,
  /** Millicredits per token. */
  factor: number,
  /** Maximum number of tokens of the attempt, prompt and answers together. */
  tokensMax: number,
  /** The routers' signature over the payer and the limit of the attempt: base64url, opaque to the agent. */
  grant: string,
  /** The rest of the request's 600 s. It is a duration, because clocks differ. */
  remainingMs: number,
  /** The router's id, as in its welcome. */
  router: string,
  bodyBytes: number,
  /** 1 if the router reads DONE frames. Older routers would close the connection at a DONE. */
  readsDone?: number,
];

/** The kind of an answer. Only answers to a router's own questions have `text`. */
export type AnswerKind = "events" | "json" | "text";
export type AnswerRecord = readonly [
  status: number,
  kind: AnswerKind,
  /** 0 if unknown. */
  retryAfterSeconds: number,
  /** What the request waited for in its slot, and how many ms. "" if it did not wait. */
  waited: string,
  /** The node's estimate of that wait in ms when the request came. Absent or 0 if it made none. */
  estimatedMs?: number,
];

/** Returns the fields of a record. Returns no entries if the text is not a record. */
export function readRecord(text: string): readonly unknown[] {
  const value = parseJson(text);
  return Array.isArray(value) ? value : [];
}

/** The engine died during an attempt. `alone`: it ran no other request. `shared`: another request may be the cause. */
export type EngineDeath = "alone" | "shared";

/**
 * Why an attempt failed. `node-failed`: the engine or the agent failed. `engine-lost`: the engine hung, died or gave up
 * after output, maybe because of the request. `node-busy`: the agent had no room and did not ask the engine.
 * `engine-refused`: the engine refused a request that follows all rules of the service. `engine-away`: the engine does
 * not listen, so the request did not reach it.
 */
export type NodeFault = "node-failed" | "engine-lost" | "node-busy" | "engine-refused" | "engine-away";

/** Path of the first request on a new data connection. The agent answers with a `NodeIdentity` as JSON. */
export const identityPath = "/weiche/identity";

export interface NodeIdentity {
  readonly node: string;
  readonly bootId: string;
}

/** Path of an agent's metrics. Routers pass them to scrapers that cannot reach the agent. */
export const metricsPath = "/weiche/metrics";

/** Path of an agent's running requests, for operators. The answer is a JSON list of `NodeRequest`, the oldest first. */
export const requestsPath = "/weiche/requests";
/** Maximum length of the list of running requests. */
export const nodeRequestsMax = 2_000;

/** A request that an agent serves, without its content. */
export interface NodeRequest {
  readonly requestId: string;
  readonly attempt: number;
  readonly model: string;
  /** The slot that runs the request. Undefined while it waits. */
  readonly slot?: string;
  /** `reading`: the body is being received or checked. `waiting`: for a switch or for a place. */
  readonly state: "reading" | "waiting" | "answering";
  /** Tokens of the answer so far. */
  readonly completionTokens: number;
  /** Milliseconds since the first token. */
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

/** Returns the value if it is well-formed. */
export function readWaited(value: unknown): string | undefined {
  return typeof value === "string" && /^(switch|place) \d{1,9}$/.test(value) ? value : undefined;
}

/** Paths that an agent serves. The router maps its public paths to them. */
export const nodePaths = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
} as const;

export type NodePath = (typeof nodePaths)[keyof typeof nodePaths];

/** Open streams per data connection. A node dials another connection for each such number of streams, up to `connectionsMax`. */
export const streamsPerConnection = 250;
export const connectionsMax = 8;
