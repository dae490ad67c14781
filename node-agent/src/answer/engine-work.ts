/** What a request does with an engine once it has one. Generations and embeddings do it in their own ways. */
import type { Dialect } from "../engines/dialects/dialect.ts";
import type { DialectName } from "../engines/engine.ts";
import type { EngineCall } from "./engine-call.ts";
import type { TokenCounts } from "./usage-count.ts";

export interface EngineWork {
  /** How many answers are made at the same time: choices of a chat or completion; 1 for embeddings. */
  readonly answers: number;
  /** Rejects with an `ApiError`, an `EngineFault` or the reason for which the request ended. Runs once. */
  run(engine: EngineAccess): Promise<FinishedAnswer>;
  /** What was used until now, for an answer that will not be whole. */
  soFar(): TokenCounts;
}

/** The engine that a request was given, and the way to its client. */
export interface EngineAccess {
  readonly dialect: Dialect;
  readonly dialectName: DialectName;
  /** How many tokens a request may have, as the engine says; undefined if it does not. */
  readonly windowTokens: number | undefined;
  /** See `GenerationRequest`. */
  readonly cacheSalt: string | undefined;
  /** Whether the client may know how much of its prompt the engine had in its cache. */
  readonly showsCached: boolean;
  /** Sends a request that ends with the client's. The answer is the caller's to close. */
  ask(path: string, body: Buffer): Promise<EngineCall>;
  /** Sends events to the client, of an answer that may yet break off. */
  writeEvents(text: string): Promise<void> | undefined;
  /** The engine refuses what the service promises. `detail` is for its operator and quotes nothing of the request. */
  onShortfall(detail: string): void;
  /** Output has come, by now so many chunks in all. Called once per read. */
  onOutput(chunks: number): void;
}

export interface FinishedAnswer {
  readonly counts: TokenCounts;
  /** What of the answer is still to be sent: the last byte of all is in it. */
  readonly rest: Iterable<string>;
}
