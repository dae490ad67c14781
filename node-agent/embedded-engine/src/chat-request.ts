/** Reads the body of a chat completion. */
import { Fields, isObject, type JsonObject } from "./fields.ts";
import { readGeneration, type GenerationRequest } from "./generation-request.ts";
import { invalid } from "./request-error.ts";

export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

export interface Tool {
  readonly name: string;
  readonly parameters: unknown;
}

export interface ChatRequest extends GenerationRequest {
  readonly messages: readonly ChatMessage[];
  /** As the template gets them. Empty with `tool_choice: none`: the model does not learn of them. */
  readonly toolDefinitions: readonly JsonObject[];
  /** Those that the model may call. */
  readonly tools: readonly Tool[];
  /** Whether it must call one. */
  readonly toolRequired: boolean;
  /** A named function is called exactly once. */
  readonly calls: "one" | "many";
  /** The JSON schema of the content; absent: free text. */
  readonly schema?: unknown;
  readonly thinking: boolean;
  /** Further variables of the template. */
  readonly templateVariables: JsonObject;
  /** Alternatives to show of each token; absent: no logprobs. */
  readonly logprobs?: number;
}

export function readChatRequest(body: unknown): ChatRequest {
  const fields = new Fields(body);
  const messages = fields.required("messages", fields.array("messages")).map(readMessage);
  if (messages.length === 0) throw fields.wrong("messages", "an array with at least one message");
  const variables = fields.object("chat_template_kwargs") ?? {};
  const effort = fields.string("reasoning_effort");
  const schema = readResponseFormat(fields);
  const logprobs = fields.boolean("logprobs") ?? false;
  const alternatives = fields.integer("top_logprobs", 0, 20);
  if (alternatives !== undefined && !logprobs) throw invalid("'top_logprobs' needs 'logprobs'", "top_logprobs");
  return {
    ...readGeneration(fields),
    ...readTools(fields),
    messages,
    ...(schema !== undefined && { schema }),
    thinking: readThinking(variables) ?? (effort !== undefined && effort !== "none"),
    templateVariables: { ...(effort !== undefined && { reasoning_effort: effort }), ...variables },
    ...(logprobs && { logprobs: alternatives ?? 0 }),
  };
}

function readThinking(variables: JsonObject): boolean | undefined {
  const value = variables["enable_thinking"] ?? variables["thinking"] ?? undefined;
  if (value === undefined || typeof value === "boolean") return value;
  throw invalid("'chat_template_kwargs.enable_thinking' must be a boolean", "chat_template_kwargs");
}

function readMessage(value: unknown, index: number): ChatMessage {
  const fields = new Fields(value, `messages[${index}]`);
  const role = fields.required("role", fields.oneOf("role", ["system", "developer", "user", "assistant", "tool"]));
  const calls = fields.array("tool_calls")?.map((call) => readToolCall(call, fields));
  return {
    ...(value as JsonObject),
    // No template knows OpenAI's newer word.
    role: role === "developer" ? "system" : role,
    content: readContent(fields),
    ...(calls && { tool_calls: calls }),
  };
}

function readContent(fields: Fields): string {
  const content = fields.get("content") ?? "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) throw fields.wrong("content", "a string or an array of parts");
  const texts = content.map((part: unknown) => {
    if (isObject(part) && part["type"] === "text" && typeof part["text"] === "string") return part["text"];
    throw invalid("this model takes text parts only", fields.name("content"));
  });
  return texts.join("\n");
}

/** Templates expect the arguments as an object; what is not one stays the string it is. */
function readToolCall(value: unknown, message: Fields): JsonObject {
  const called = isObject(value) && value["function"];
  if (!isObject(called) || typeof called["name"] !== "string")
    throw message.wrong("tool_calls", "an array of calls with a function name");
  return { ...(value as JsonObject), function: { ...called, arguments: parsed(called["arguments"]) } };
}

function parsed(text: unknown): unknown {
  try {
    const value: unknown = JSON.parse(text as string);
    return isObject(value) ? value : text;
  } catch {
    return text ?? {};
  }
}

function readTools(fields: Fields): Pick<ChatRequest, "toolDefinitions" | "tools" | "toolRequired" | "calls"> {
  const definitions = fields.array("tools") ?? [];
  const tools = definitions.map((definition, index) => readTool(definition, `tools[${index}]`));
  const choice = fields.get("tool_choice") ?? "auto";
  const calls = fields.boolean("parallel_tool_calls") === false ? "one" : "many";
  if (choice === "none") return { toolDefinitions: [], tools: [], toolRequired: false, calls };
  const toolDefinitions = definitions as JsonObject[];
  if (choice === "auto") return { toolDefinitions, tools, toolRequired: false, calls };
  if (choice === "required") {
    if (tools.length === 0) throw invalid("'tool_choice' is required, but there are no tools", "tool_choice");
    return { toolDefinitions, tools, toolRequired: true, calls };
  }
  const name = isObject(choice) && isObject(choice["function"]) ? choice["function"]["name"] : undefined;
  if (typeof name !== "string") throw fields.wrong("tool_choice", "none, auto, required or a named function");
  const named = tools.filter((tool) => tool.name === name);
  if (named.length === 0) throw invalid("'tool_choice' names no function of 'tools'", "tool_choice");
  return { toolDefinitions, tools: named.slice(0, 1), toolRequired: true, calls: "one" };
}

function readTool(definition: unknown, path: string): Tool {
  const fields = new Fields(definition, path);
  fields.oneOf("type", ["function"]);
  const called = new Fields(fields.required("function", fields.object("function")), `${path}.function`);
  return { name: called.required("name", called.string("name")), parameters: called.object("parameters") ?? {} };
}

function readResponseFormat(fields: Fields): unknown {
  const format = fields.object("response_format");
  if (format === undefined) return undefined;
  const inner = new Fields(format, "response_format");
  switch (inner.required("type", inner.oneOf("type", ["text", "json_object", "json_schema"]))) {
    case "text":
      return undefined;
    case "json_object":
      return { type: "object" };
    case "json_schema": {
      const named = new Fields(
        inner.required("json_schema", inner.object("json_schema")),
        "response_format.json_schema",
      );
      return named.required("schema", named.object("schema"));
    }
  }
}
