/**
 * Classifies the refusals of engines by status and error type, and by message only if nothing else distinguishes them.
 */
import type { EngineRefusal } from "./dialect.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import { readRefusedValue } from "./refused-value.ts";

const contextTypes: ReadonlySet<unknown> = new Set([
  "exceed_context_size_error",
  "context_length_exceeded",
  "ContextWindowExceededError",
]);

/** Only the beginning of a message is matched. After it, some engines quote the request. */
const messageCharactersMax = 2 << 10;
const tokensMax = 2 ** 31 - 1;

/** Messages whose captured number is the engine's context window. */
const windowPatterns: readonly RegExp[] = [
  /maximum context length (?:is|of) (\d+)/,
  /context length \((\d+) tokens\)/,
  /context size (?:\(|of )(\d+)/,
  /cannot be greater than max_model_len\D*(\d+)/,
  /too large to process\D*(\d+)/,
  /must have less than (\d+) tokens/,
];

/** Messages whose captured number is the length of the prompt, without `max_tokens`. */
const promptPatterns: readonly RegExp[] = [
  /prompt contains (\d+) input tokens/,
  /(?<!\d)(\d+) tokens (?:from|in) the (?:input )?messages/,
  /(?:request|input) \((\d+) tokens\)/,
  /resulted in (\d+) tokens/,
  /tokens\. Given: (\d+)/,
];

const promptMinPattern = /prompt contains at least (\d+) input tokens/;

/** vLLM's message for a prompt that fills the window to the last token. */
const noRoomPattern = /max_tokens must be at least 1, got (?:0|-\d+)/;

/** Errors with status 500 or 501 that are the request's fault. */
const requestFaultPattern = /json\.exception|image input is not supported|does not logits computation/;

/**
 * vLLM's front returns this for every request after its generating process died, until it exits itself a second later.
 */
const deadCorePattern = /^EngineCore encountered an issue\b/;

export function readConventionRefusal(status: number, body: unknown): EngineRefusal {
  const error = errorOf(body);
  const message = typeof error["message"] === "string" ? error["message"].slice(0, messageCharactersMax) : "";
  const context = readContext(status, error, message);
  if (context) return context;
  if (status === 404) return { kind: "failed", reason: "unknown model" };
  if (status === 401 || status === 403) return { kind: "failed", reason: "key refused" };
  if (status === 429 || status === 503) return { kind: "overloaded" };
  const requestsFault = (status >= 400 && status < 500 && status !== 424) || status === 501;
  if (status === 500 && deadCorePattern.test(message)) return { kind: "failed", reason: "core died" };
  if (!requestsFault && !requestFaultPattern.test(message)) return { kind: "failed", reason: "engine error" };
  return readRefusedValue(error, message);
}

/** Returns the error, which is under `error` or, with SGLang and TEI, the body itself. It may be a bare string. */
export function errorOf(body: unknown): Json {
  if (!isObject(body)) return {};
  const error = body["error"] ?? body;
  if (typeof error === "string") return { message: error };
  return isObject(error) ? error : {};
}

function readContext(status: number, error: Json, message: string): EngineRefusal | undefined {
  const isContext =
    contextTypes.has(error["type"]) ||
    contextTypes.has(error["code"]) ||
    (status < 500 ? [...windowPatterns, noRoomPattern] : [/too large to process/]).some((p) => p.test(message));
  if (!isContext) return undefined;
  return {
    kind: "context",
    promptTokens: count(error["n_prompt_tokens"]) ?? firstNumber(promptPatterns, message),
    promptTokensMin: firstNumber([promptMinPattern], message),
    contextTokens: count(error["n_ctx"]) ?? firstNumber(windowPatterns, message),
  };
}

function firstNumber(patterns: readonly RegExp[], message: string): number | undefined {
  for (const pattern of patterns) {
    const match = pattern.exec(message);
    if (match) return count(Number(match[1]));
  }
  return undefined;
}

function count(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= tokensMax
    ? (value as number)
    : undefined;
}
