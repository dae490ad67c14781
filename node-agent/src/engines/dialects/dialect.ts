/**
 * A dialect: the protocol of one kind of engine. This file covers requests and answers, `DialectLifecycle` the rest.
 * Names of an engine's API stay behind this interface.
 */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { DialectLifecycle } from "../dialect-lifecycle.ts";
import type { DialectName } from "../engine.ts";
import type { Json } from "@weiche/shared/json.ts";

export interface Dialect extends DialectLifecycle {
  readonly keepsConnections: boolean;
  /** The engine sends a usage chunk for each choice, to be added up, instead of one for all choices. */
  readonly usagePerChoice: boolean;
  /**
   * Whether silence means that the engine hangs, even before its counters were read. `always`: it always has counters
   * of work. `generating`: generations send events while the engine reads their prompt.
   */
  readonly showsLife?: "always" | "generating";
  /** Required tool calls are requested as JSON text, which `RequiredCalls` parses. */
  readonly requiredCallsAreText?: true;
  /** The engine is known to separate its prefix cache by `cacheSalt`, so that clients may see their cached tokens. */
  readonly keepsSaltsApart: boolean;
  /** Such engines may cut texts to embed that are too long for them, without a word. */
  readonly mayCutTexts?: true;
  chatBody(request: ChatRequest): object;
  completionBody(request: CompletionRequest): object;
  embeddingBody(model: ModelId, texts: readonly string[]): object;
  /** Translates one event of a stream. Throws an `EngineFault` if it is malformed. */
  readChunk(event: Json): EngineChunk;
  /** Classifies an answer with this error status, or an error event with this body. */
  readRefusal(status: number, body: unknown): EngineRefusal;
  /**
   * Requests that count the tokens of a refused body, one per text, longest first. Each answer has the number in
   * `count`.
   */
  countRequests?(body: object): readonly CountRequest[];
}

export interface CountRequest {
  readonly path: string;
  readonly body: object;
}

/** A validated request with the model's rules applied. */
export interface GenerationRequest {
  readonly model: ModelId;
  /** Requests with the same salt share the engine's prefix cache. If undefined, all requests share it. */
  readonly cacheSalt?: string;
  readonly maxTokens?: number;
  /** Fields of the convention that engines accept unchanged: temperature, penalties, stop strings. */
  readonly sampling: { readonly seed?: bigint; readonly stop?: readonly string[]; readonly [field: string]: unknown };
  readonly choices: number;
  /** Number of alternatives per token. If undefined, no log probabilities. */
  readonly logprobs?: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export interface ChatRequest extends GenerationRequest {
  readonly kind: "chat";
  readonly messages: readonly object[];
  readonly tools: readonly Tool[];
  /** The tools in a light form, by dialects whose grammars would otherwise cost too much. */
  readonly lightTools?: ReadonlyMap<DialectName, readonly Tool[]>;
  readonly toolChoice: "auto" | "required" | { readonly name: string };
  /** An answer has at most one call, if the engine can limit it. */
  readonly oneCall?: boolean;
  readonly responseFormat?: ResponseFormat;
  readonly thinking: Thinking;
  /** Finish reason `stop` is sent as `tool_calls`: a call was required, but the model cannot be forced to make one. */
  readonly stopsAsToolCalls: boolean;
}

export type ResponseFormat =
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly json_schema: { readonly name: string; readonly schema: unknown; readonly strict?: boolean };
    };

export interface Tool {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description?: string; readonly parameters?: unknown };
}

export interface Thinking {
  readonly on: boolean;
  /** If undefined, the engine's default applies. */
  readonly effort?: string;
  /** Whether the engine accepts arguments of the chat template, with which many models switch reasoning on and off. */
  readonly templateSwitch: boolean;
}

export interface CompletionRequest extends GenerationRequest {
  readonly kind: "completion";
  readonly prompt: string;
}

/** One event of a stream. Undefined fields were not sent. */
export interface EngineChunk {
  /** The id of the answer, or of the chunk. */
  readonly id?: string;
  readonly choices: readonly ChoiceDelta[];
  /** Usage as reported, unchecked. With choices, it covers the first choice so far. Without choices, it is final. */
  readonly usage?: RawUsage;
  readonly promptTokens?: unknown;
  readonly error?: unknown;
}

export interface ChoiceDelta {
  readonly index: number;
  /** The engine sent no index. `index` is then the position in the chunk. */
  readonly hasNoIndex?: true;
  readonly reasoning?: string;
  readonly content?: string;
  readonly toolCalls?: readonly ToolCallPiece[];
  readonly finish?: string;
  readonly logprobs?: object;
}

export interface ToolCallPiece {
  /** Undefined if the engine does not number its calls, or not usably. */
  readonly index?: number;
  readonly id?: string;
  readonly name?: string;
  readonly arguments?: string;
}

export interface RawUsage {
  readonly prompt: unknown;
  readonly completion: unknown;
  readonly reasoning?: unknown;
  readonly cached?: unknown;
}

/** Why an engine refused a request. Its own text is never shown. */
export type EngineRefusal =
  | {
      readonly kind: "context";
      /** Undefined if it was not reported, or only as a lower bound. */
      readonly promptTokens?: number;
      readonly promptTokensMin?: number;
      readonly contextTokens?: number;
    }
  /** The engine does not support something in the request. */
  | {
      readonly kind: "invalid";
      /** Name of the parameter in the body. `schema`: one of the JSON Schemas, if the engine does not name it. */
      readonly param?: string;
      /** The allowed value, as it continues a sentence after "must be". */
      readonly must?: string;
      /** Set if the service promises what the engine refused: advice for the operator. Does not quote the request. */
      readonly shortfall?: string;
    }
  | { readonly kind: "overloaded" }
  /** The engine or the agent is at fault, not the request. */
  | { readonly kind: "failed"; readonly reason: "unknown model" | "key refused" | "engine error" | "core died" };
