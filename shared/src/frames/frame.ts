/** Types, bounds and codes of the frames on a data connection. README.md specifies the wire. */

export const frames = { head: 1, data: 2, end: 3, cancel: 4, window: 5, ping: 6, pong: 7, goAway: 8, done: 9 } as const;
export type FrameType = (typeof frames)[keyof typeof frames];
/** DATA is passed on in pieces, other frames as a whole. */
export type WholeFrameType = Exclude<FrameType, typeof frames.data>;

/** Bytes of length, type and stream. */
export const headerBytes = 9;
/** The initial credit of each direction of a stream. */
export const windowBytes = 256 << 10;
export const streamsMax = 2_000;

export interface FrameRule {
  /** A frame of the connection has stream 0. */
  readonly of: "stream" | "connection";
  /** Bounds of the payload, in bytes. */
  readonly bytes: readonly [min: number, max: number];
}

export const frameRules: Readonly<Record<FrameType, FrameRule>> = {
  [frames.head]: { of: "stream", bytes: [1, 16 << 10] },
  [frames.data]: { of: "stream", bytes: [1, 64 << 10] },
  [frames.end]: { of: "stream", bytes: [1, 1] },
  [frames.cancel]: { of: "stream", bytes: [1, 1] },
  [frames.window]: { of: "stream", bytes: [4, 4] },
  [frames.ping]: { of: "connection", bytes: [8, 8] },
  [frames.pong]: { of: "connection", bytes: [8, 8] },
  [frames.goAway]: { of: "connection", bytes: [0, 1 << 10] },
  [frames.done]: { of: "stream", bytes: [0, 0] },
};

/** How a body ended, as an END reports it. Later versions may add codes. */
export const ends = {
  ...{ complete: 0, failed: 1, engineDiedAlone: 2, engineDiedShared: 3 },
  /** The engine or the agent failed. The router may ask another node. */
  nodeFailed: 4,
  /**
   * The engine hung, disappeared or gave up after output, perhaps because of this request. The router asks no other
   * node.
   */
  engineLost: 5,
  /** The client did not read, or not within the request's time. */
  unread: 6,
  /** The node itself had no room for the request, and did not ask its engine. The router may ask another node. */
  nodeBusy: 7,
  /**
   * The engine refused a request that follows all rules of the service. The router may ask another node, whose answer
   * shows whether the request or the engine is the cause.
   */
  engineRefused: 8,
  /**
   * The engine does not listen, so the request did not reach it. The router may ask another node, or this node again,
   * which holds the request until its engine is restarted.
   */
  engineAway: 9,
} as const;

const cancels = ["unwanted", "refused", "internal"] as const;
export type Cancel = (typeof cancels)[number];

export function cancelCode(reason: Cancel): number {
  return cancels.indexOf(reason);
}

export function cancelOf(code: number): Cancel {
  return cancels[code] ?? "internal";
}

export const rules = ["type", "length", "stream", "state", "credit"] as const;
export type Rule = (typeof rules)[number];

/** The peer broke a rule of the wire. Its connection is closed. */
export class BrokenRule extends Error {
  readonly rule: Rule;

  constructor(rule: Rule, what: string) {
    super(`${what} (rule "${rule}")`);
    this.rule = rule;
  }
}
