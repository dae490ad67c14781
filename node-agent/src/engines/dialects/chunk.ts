/** Reads the events of chat and completion streams in the OpenAI convention, which all engines follow. */
import type { ChoiceDelta, EngineChunk, RawUsage, ToolCallPiece } from "./dialect.ts";
import { EngineFault } from "./engine-fault.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";

/** Throws an `EngineFault` if the event is not a chunk. */
export function readConventionChunk(event: Json): EngineChunk {
  if (event["error"] != null) return { choices: [], error: event };
  const choices = list(event["choices"] ?? [], "choices").map(readChoice);
  const usage = isObject(event["usage"]) ? readUsage(event["usage"]) : undefined;
  return { choices, usage, promptTokens: usage?.prompt };
}

/** Returns undefined for usage without counts. Some engines send such usage with each chunk until the last. */
function readUsage(usage: Json): RawUsage | undefined {
  const prompt = usage["prompt_tokens_details"];
  const completion = usage["completion_tokens_details"];
  if (usage["prompt_tokens"] == null || usage["completion_tokens"] == null) return undefined;
  return {
    prompt: usage["prompt_tokens"],
    completion: usage["completion_tokens"],
    cached: isObject(prompt) ? prompt["cached_tokens"] : undefined,
    reasoning: isObject(completion) ? completion["reasoning_tokens"] : undefined,
  };
}

function readChoice(value: unknown): ChoiceDelta {
  const choice = object(value, "choice");
  const delta = object(choice["delta"] ?? {}, "delta");
  const toolCalls = delta["tool_calls"];
  return {
    index: whole(choice["index"], "choice index"),
    reasoning: text(delta["reasoning"], "reasoning") || text(delta["reasoning_content"], "reasoning_content"),
    content: text(delta["content"] ?? choice["text"], "content"),
    toolCalls: toolCalls == null ? undefined : readToolCalls(toolCalls),
    // Some engines send an empty reason with each chunk.
    finish: text(choice["finish_reason"], "finish_reason") || undefined,
    logprobs: isObject(choice["logprobs"]) ? choice["logprobs"] : undefined,
  };
}

/** Older versions of TGI send one call, not a list. */
function readToolCalls(value: unknown): ToolCallPiece[] {
  return isObject(value) ? [readToolCall(value)] : list(value, "tool_calls").map(readToolCall);
}

function readToolCall(value: unknown): ToolCallPiece {
  const call = object(value, "tool call");
  const called = object(call["function"] ?? {}, "function");
  const given = called["arguments"];
  return {
    // Older versions of Ollama put the index into the function.
    index: [call["index"], called["index"]].find(isIndex),
    id: typeof call["id"] === "string" ? call["id"] : undefined,
    name: text(called["name"], "function name"),
    // Some tool parsers send the arguments as an object, not as JSON text.
    arguments: isObject(given) ? JSON.stringify(given) : text(given, "arguments"),
  };
}

function object(value: unknown, what: string): Json {
  if (isObject(value)) return value;
  throw new EngineFault("malformed", `${what} is not an object`);
}

function list(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new EngineFault("malformed", `${what} is not a list`);
}

function text(value: unknown, what: string): string | undefined {
  if (value == null) return undefined;
  if (typeof value === "string") return value;
  throw new EngineFault("malformed", `${what} is not a string`);
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function whole(value: unknown, what: string): number {
  if (isIndex(value)) return value;
  throw new EngineFault("malformed", `${what} is not a number`);
}
