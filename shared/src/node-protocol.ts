/** The data connections between router and agent: HTTP/2, dialled by the agent, which is the server on them. */

/** Headers of a request from router to agent. */
export const nodeHeaders = {
  requestId: "x-weiche-request-id",
  attempt: "x-weiche-attempt",
  account: "x-weiche-account",
  user: "x-weiche-user",
  key: "x-weiche-key",
  model: "x-weiche-model",
  /** The slot that the placement chose. */
  slot: "x-weiche-slot",
  /** Millicredits per token. */
  factor: "x-weiche-factor",
  /** The most tokens, prompt and answers together, that the attempt may cost. */
  tokensMax: "x-weiche-tokens-max",
  /** The routers' signature over what the attempt may be billed to: base64url, opaque to the agent. */
  grant: "x-weiche-grant",
  /** Time left of the request's 600 s; a duration, since clocks differ. */
  remainingMs: "x-weiche-remaining-ms",
  /** The router's id, as in its welcome. */
  router: "x-weiche-router",
} as const;

/**
 * Trailer that tells how an answer ended. `complete`: it is whole. `error`: the last event told the client, so that the
 * router only cuts the connection. No trailer: it was broken off, and the router tells the client. An answer of known
 * length says `complete` among its headers instead: `content-length` proves it.
 */
export const endTrailer = "x-weiche-end";
export const endComplete = "complete";
export const endError = "error";

/**
 * Header of an error, or trailer of an answer that ends with one: the engine died during the attempt. `alone`: nothing
 * else was running on it. `shared`: other requests were, and may have been the cause.
 */
export const engineDeathHeader = "x-weiche-engine-death";
export const engineDeaths = ["alone", "shared"] as const;
export type EngineDeath = (typeof engineDeaths)[number];

export function readEngineDeath(value: unknown): EngineDeath | undefined {
  return engineDeaths.find((death) => death === value);
}

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
}

/** Header of an answer: what the request waited for in its slot, and how many ms. Absent: it did not wait. */
export const waitedHeader = "x-weiche-waited";
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

/** HTTP/2 stream window of the router: the most that a paused stream buffers there. */
export const routerWindowBytes = 128 << 10;
/** HTTP/2 stream window of the agent: request bodies have up to 20 MB. */
export const agentWindowBytes = 1 << 20;
/** HTTP/2 window of a session: the most bytes in flight. Node reads them at once, so that it does not bound memory. */
export const sessionWindowBytes = 4 << 20;
/** Node counts unsent bytes, 20 MB and more for each of many requests; its default, 10 MB, would refuse new streams. */
export const sessionMemoryMiB = 4_096;
/** One data session at first, and another for every so many open streams, up to `sessionsMax`. */
export const streamsPerSession = 250;
export const sessionsMax = 8;
/** Limit per session; a single session died at 9,500. */
export const streamsPerSessionMax = 2_000;
