/**
 * The data connections between router and agent, as far as both must agree: HTTP/2 over a connection that the agent
 * dials; the agent is the HTTP/2 server, the router the client.
 */

/** Headers of a request from router to agent. */
export const nodeHeaders = {
  requestId: "x-weiche-request-id",
  attempt: "x-weiche-attempt",
  account: "x-weiche-account",
  user: "x-weiche-user",
  key: "x-weiche-key",
  model: "x-weiche-model",
  /** Slot that the placement had in mind. */
  slot: "x-weiche-slot",
  /** Millicredits per token. */
  factor: "x-weiche-factor",
  /** The most tokens, prompt and answers together, that the attempt may cost. */
  tokensMax: "x-weiche-tokens-max",
  /** The routers' signature over what the attempt may be billed to: base64url, opaque to the agent. */
  grant: "x-weiche-grant",
  /** What is left of the request's 600 s; never an absolute time, since clocks differ. */
  remainingMs: "x-weiche-remaining-ms",
  /** Identity of the router, as in its welcome. */
  router: "x-weiche-router",
} as const;

/**
 * The trailer says how an answer ended. `complete`: it is whole. `error`: it is not, and the agent's last event has told
 * the client so; the router only cuts the connection. Without the trailer the answer is broken off, however clean its
 * end looks, and the router itself tells the client. An answer that is there as a whole says `complete` in its head
 * already, next to its `content-length`: so many bytes prove it, and no trailer has to be sent and waited for.
 */
export const endTrailer = "x-weiche-end";
export const endComplete = "complete";
export const endError = "error";

/**
 * A header of an error, or a trailer of an answer that ends with one: the engine died over it, with nothing else running on
 * it, or with others that may have been the cause as well.
 */
export const engineDeathHeader = "x-weiche-engine-death";
export const engineDeaths = ["alone", "shared"] as const;
export type EngineDeath = (typeof engineDeaths)[number];

export function readEngineDeath(value: unknown): EngineDeath | undefined {
  return engineDeaths.find((death) => death === value);
}

/** The first request on a new data session: the agent answers `{node, bootId}` as JSON. */
export const identityPath = "/weiche/identity";

export interface NodeIdentity {
  readonly node: string;
  readonly bootId: string;
}

/** Paths that an agent serves; the router maps its public paths onto them. */
export const nodePaths = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
} as const;

export type NodePath = (typeof nodePaths)[keyof typeof nodePaths];

/** What one paused stream may hold at the router. */
export const routerWindowBytes = 128 << 10;
/** Request bodies are up to 20 MB: the agent takes them in larger steps. */
export const agentWindowBytes = 1 << 20;
/** What may be under way on a whole session; Node takes it off the wire at once, so that it bounds no memory. */
export const sessionWindowBytes = 4 << 20;
/** Node counts what waits to be sent, 20 MB and more for each of many requests; its default of 10 would refuse new streams. */
export const sessionMemoryMiB = 4_096;
/** One data session at first, another per so many open streams, up to `sessionsMax`. */
export const streamsPerSession = 250;
export const sessionsMax = 8;
/** Never more on one session: a single one died at 9,500. */
export const streamsPerSessionMax = 2_000;
