/** The load of a simulation: requests in order of time. A stream, because a day has more requests than memory should hold. */

export interface LoadRequest {
  /** Milliseconds from the start of the load. Never earlier than the request before. */
  readonly atMs: number;
  readonly account: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Requests with the same conversation repeat its earlier text as their beginning. */
  readonly conversation?: string;
}

/** Each iteration begins at the start and yields the same requests. */
export type Load = Iterable<LoadRequest>;
