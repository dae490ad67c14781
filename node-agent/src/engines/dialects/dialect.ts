/**
 * A dialect: how engines of one kind are spoken to. This is the request half, from our words into the engine's and back;
 * the other half is the engine's life. Foreign names and shapes stop here.
 */
import type { ModelId } from "@weiche/shared/ids.ts";
import type { DialectLifecycle } from "../dialect-lifecycle.ts";
import type { Json } from "@weiche/shared/json.ts";
import type { SchemaBounds } from "./schema-bounds.ts";

export interface Dialect extends DialectLifecycle {
  /** Whether a connection may be used for several requests in a row. */
  readonly keepsConnections: boolean;
  /** Each answer of a request has a usage chunk of its own, so that they add up. */
  readonly usagePerChoice: boolean;
  /** Calls that must come are asked of it as JSON text, which `RequiredCalls` reads. */
  readonly requiredCallsAreText?: true;
  /** It is known to keep prompts with another `cacheSalt` apart: what it found in its cache may be shown. */
  readonly keepsSaltsApart: boolean;
  /** What the JSON Schemas of a request may cost. */
  readonly schemaBounds: SchemaBounds;
  /** Bodies always ask for a stream with as much usage as the engine can give. */
  chatBody(request: ChatRequest): object;
  completionBody(request: CompletionRequest): object;
  embeddingBody(model: ModelId, texts: readonly string[]): object;
  /** What one event of a stream says. Throws an `EngineFault` if it is none. */
  readChunk(event: Json): EngineChunk;
  /** What an answer with this status, or an error event with this body, means. */
  readRefusal(status: number, body: unknown): EngineRefusal;
  /**
   * How the engine counts the input of a body that it has refused without saying the count: one question for each text,
   * the longest first. An answer's `count` is the number.
   */
  countRequests?(body: object): readonly CountRequest[];
}

export interface CountRequest {
  readonly path: string;
  readonly body: object;
}

/** A request as an engine is to see it: checked, with the model's rules applied. */
export interface GenerationRequest {
  readonly model: ModelId;
  /** Requests with the same one may find one another's prompts in the engine's cache. Absent: all may. */
  readonly cacheSalt?: string;
  readonly maxTokens?: number;
  readonly temperature: number;
  readonly topP: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  readonly seed?: number;
  readonly stop: readonly string[];
  readonly choices: number;
  /** Alternatives to show of each token; absent: no probabilities at all. */
  readonly logprobs?: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export interface ChatRequest extends GenerationRequest {
  readonly kind: "chat";
  readonly messages: readonly object[];
  /** Empty: none. */
  readonly tools: readonly Tool[];
  readonly toolChoice: "auto" | "required" | { readonly name: string };
  readonly responseFormat?: ResponseFormat;
  readonly thinking: Thinking;
  /** A plain `stop` is told as `tool_calls`: the client demanded a call, and the model is one that cannot be forced. */
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
  /** Absent: the engine's own. */
  readonly effort?: string;
  /** Whether the model's engine takes arguments of the template, in which many models have their switch. */
  readonly templateSwitch: boolean;
}

export interface CompletionRequest extends GenerationRequest {
  readonly kind: "completion";
  readonly prompt: string;
}

/** One event of a stream in our words. What is absent was not said. */
export interface EngineChunk {
  readonly choices: readonly ChoiceDelta[];
  /** As the engine says it, unchecked. With choices: of the first one's answer so far; without: of the whole. */
  readonly usage?: RawUsage;
  /** Length of the prompt, as soon as the engine knows it. Unchecked. */
  readonly promptTokens?: unknown;
  /** The body of an error event. */
  readonly error?: unknown;
}

export interface ChoiceDelta {
  readonly index: number;
  readonly reasoning?: string;
  readonly content?: string;
  readonly toolCalls?: readonly ToolCallPiece[];
  readonly finish?: string;
  readonly logprobs?: object;
}

export interface ToolCallPiece {
  readonly index: number;
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

/** Why an engine did not answer, in our words; its own text is never shown. */
export type EngineRefusal =
  | {
      readonly kind: "context";
      /** Absent: it did not say, or said only a lower bound. */
      readonly promptTokens?: number;
      readonly promptTokensMin?: number;
      readonly contextTokens?: number;
    }
  /** The request asks for what the engine does not do. */
  | {
      readonly kind: "invalid";
      /** The parameter's name in the body; `schema` for one of its JSON Schemas, the engine does not say which. */
      readonly param?: string;
      /** What it must be instead, behind "must be". */
      readonly must?: string;
      /** The service promises what the engine refuses: what its operator can do. Quotes nothing of the request. */
      readonly shortfall?: string;
    }
  /** It has no room, or is still loading. */
  | { readonly kind: "overloaded" }
  /** Its own fault, or ours. */
  | { readonly kind: "failed"; readonly reason: "unknown model" | "key refused" | "engine error" | "core died" };
