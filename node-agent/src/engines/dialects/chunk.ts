/**
 * Reads the events of chat and completion streams in the OpenAI convention, which all engines follow. What engines are
 * known to send besides it, apart from tool calls (see `ToolCalls`):
 *
 * | what an engine or a gateway sends                            | seen in                    | what it means      |
 * |--------------------------------------------------------------|----------------------------|--------------------|
 * | `null`, `false`, an empty text or list in place of a value   | gateways                   | no value           |
 * | no choices or no delta; `null` in their place                | Azure, DeepInfra, gateways | no output          |
 * | an `error` that says nothing, beside a good chunk            | gateways                   | no error           |
 * | an error without `error` around it: `"object": "error"`      | LMDeploy, MLC, older vLLM  | an error           |
 * | no `index`, or an index that counts the chunks of an answer  | gateways, TGI to 1.4       | see ChoiceIndexes  |
 * | a `message` in a choice that has no `delta`                  | servers that do not stream | the delta          |
 * | the content as a list of parts: text, thinking, references   | Mistral                    | text and reasoning |
 * | a call in place of a list of calls, or `null` in the list    | older TGI, gateways        | the calls          |
 * | `function_call`, alone or beside `tool_calls`                | llama-cpp-python           | one call           |
 * | an empty finish reason                                       | older Ollama               | none               |
 * | log probabilities without tokens                             | Azure                      | none               |
 */
import type { ChoiceDelta, EngineChunk, RawUsage, ToolCallPiece } from "./dialect.ts";
import { EngineFault } from "./engine-fault.ts";
import { isObject, parseJson, type Json } from "@weiche/shared/json.ts";

/** Parses the data of an event. Returns null for an event without content. Throws an `EngineFault`. */
export function parseEvent(data: string): Json | null {
  const event: unknown = parseJson(data);
  if (event === undefined) throw new EngineFault("malformed", "an event is not valid JSON");
  if (event !== null && !isObject(event)) throw new EngineFault("malformed", "an event is not a JSON object");
  return event;
}

/** Throws an `EngineFault` if the event is not a chunk. */
export function readConventionChunk(event: Json): EngineChunk {
  if (isError(event["error"]) || event["object"] === "error") return { choices: [], error: event };
  const id = typeof event["id"] === "string" ? event["id"] : undefined;
  const choices = list(event["choices"], "choices").map(readChoice);
  const usage = isObject(event["usage"]) ? readUsage(event["usage"]) : undefined;
  return { id, choices, usage, promptTokens: usage?.prompt };
}

function isError(error: unknown): boolean {
  return isObject(error) ? Object.values(error).some(isSaid) : isSaid(error);
}

function isSaid(value: unknown): boolean {
  return !isAbsent(value) && value !== 0;
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

function readChoice(value: unknown, at: number): ChoiceDelta {
  const choice = object(value, "choice");
  const delta = object(choice["delta"] === undefined ? choice["message"] : choice["delta"], "delta");
  const { index } = choice;
  const { content, thought } = readContent(delta["content"] ?? choice["text"]);
  return {
    ...(isIndex(index) ? { index } : { index: at, hasNoIndex: true }),
    reasoning:
      text(delta["reasoning"], "reasoning") || text(delta["reasoning_content"], "reasoning_content") || thought,
    content,
    toolCalls: readToolCalls(delta),
    finish: text(choice["finish_reason"], "finish_reason") || undefined,
    logprobs: readLogprobs(choice["logprobs"]),
  };
}

/** Reads a text, or a list of texts and parts. */
function readContent(value: unknown): { readonly content?: string; readonly thought?: string } {
  if (!Array.isArray(value)) return { content: text(value, "content") };
  let content = "";
  let thought = "";
  for (const part of value) {
    if (typeof part === "string") content += part;
    else if (!isObject(part)) throw new EngineFault("malformed", "a part of the content is not an object");
    // A reference has no text of its own.
    else if (part["type"] === "reference") continue;
    else if (part["type"] === "thinking") thought += textOfThought(part["thinking"]);
    else if (typeof part["text"] === "string") content += part["text"];
    else throw new EngineFault("malformed", "a part of the content has no text");
  }
  return { content, thought };
}

function textOfThought(thinking: unknown): string {
  if (typeof thinking === "string") return thinking;
  return list(thinking, "thinking")
    .map((part) => text(object(part, "thinking")["text"], "thinking") ?? "")
    .join("");
}

/** Some engines repeat each call as the older `function_call`, which counts only if it is alone. */
function readToolCalls({ tool_calls: given, function_call: old }: Json): readonly ToolCallPiece[] | undefined {
  if (!isAbsent(given)) return (isObject(given) ? [given] : list(given, "tool_calls")).map(readToolCall);
  return isAbsent(old) ? undefined : [readToolCall({ function: old })];
}

function readToolCall(value: unknown): ToolCallPiece {
  const call = object(value, "tool call");
  const called = object(call["function"], "function");
  const given = called["arguments"];
  return {
    // Older versions of Ollama put the index into the function.
    index: [call["index"], called["index"]].find(isIndex),
    id: typeof call["id"] === "string" ? call["id"] : undefined,
    name: text(called["name"], "function name"),
    // Some tool parsers send the arguments as a value, not as JSON text.
    arguments: typeof given === "string" || isAbsent(given) ? text(given, "arguments") : JSON.stringify(given),
  };
}

function readLogprobs(value: unknown): object | undefined {
  const hasTokens = isObject(value) && Object.values(value).some((items) => Array.isArray(items) && items.length > 0);
  return hasTokens ? value : undefined;
}

/** Some encoders write these in place of `null` or of a field that they leave out. */
function isAbsent(value: unknown): boolean {
  return value == null || value === false || value === "" || (Array.isArray(value) && value.length === 0);
}

function object(value: unknown, what: string): Json {
  if (isAbsent(value)) return {};
  if (isObject(value)) return value;
  throw new EngineFault("malformed", `${what} is not an object`);
}

/** Returns the items that are present. */
function list(value: unknown, what: string): readonly unknown[] {
  if (isAbsent(value)) return [];
  if (Array.isArray(value)) return value.filter((item) => !isAbsent(item));
  throw new EngineFault("malformed", `${what} is not a list`);
}

function text(value: unknown, what: string): string | undefined {
  if (typeof value === "string") return value;
  if (isAbsent(value)) return undefined;
  throw new EngineFault("malformed", `${what} is not a string`);
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
