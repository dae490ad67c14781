/** The work of a request with its engine, implemented by generations and embeddings. */
import type { AnswerRest } from "./answer-rest.ts";
import type { Dialect } from "../engines/dialects/dialect.ts";
import type { DialectName } from "../engines/engine.ts";
import type { EngineCuts } from "./embeddings/cut-texts.ts";
import type { EngineCall } from "./engine-call.ts";
import type { TokenCounts } from "./usage-count.ts";

export interface EngineWork {
  /** The number of answers in parallel: choices of a chat or completion, or 1 for embeddings. */
  readonly answers: number;
  /** Runs once. Rejects with an `ApiError`, an `EngineFault` or the reason why the request ended. */
  run(engine: EngineAccess): Promise<FinishedAnswer>;
  soFar(): TokenCounts;
}

/** The engine of a request, and the destination of its events. */
export interface EngineAccess {
  readonly dialect: Dialect;
  readonly dialectName: DialectName;
  /** The context window that the engine reports. Undefined if it reports none. */
  readonly windowTokens: number | undefined;
  /** Undefined if the engine refuses texts that are too long for it. */
  readonly cuts: EngineCuts | undefined;
  /** See `GenerationRequest`. */
  readonly cacheSalt: string | undefined;
  /** Whether the client may see how many tokens of its prompt were cached. */
  readonly showsCached: boolean;
  /**
   * Sends a request to the engine. It ends with the client's request. The caller closes the answer. `holdsBack`: the
   * engine may generate for a long time without sending anything.
   */
  ask(path: string, body: Buffer, holdsBack?: boolean): Promise<EngineCall>;
  /** Sends events of an unfinished answer to the client. Returns a promise if the client is slower than the engine. */
  writeEvents(text: string): Promise<void> | undefined;
  /**
   * Reports that the engine refuses something that the service promises. `detail` is for the operator and quotes no
   * request.
   */
  onShortfall(detail: string): void;
  /** Reports a finish reason that the convention does not have, as the engine wrote it. */
  onUnknownFinish(reason: string): void;
  /** Reports output, once per read. `chunks`: the total number of chunks so far. */
  onOutput(chunks: number): void;
}

export interface FinishedAnswer {
  readonly counts: TokenCounts;
  readonly rest: AnswerRest;
}
