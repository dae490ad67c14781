/** Reads the body of a chat completion. */
import { bodyReader, optional } from "@weiche/shared/convention/body-reader.ts";
import { chatSchema, checkTogether, imageFacts } from "@weiche/shared/convention/chat.ts";
import { checkImages } from "@weiche/shared/convention/model-rules.ts";
import { isObject, parseJson, type Json } from "@weiche/shared/json.ts";
import { Type, type Static } from "typebox";
import { engineFields, readGeneration, type GenerationRequest } from "./generation-request.ts";

interface ChatMessage {
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
  /** Definitions for the template. Empty with `tool_choice: none`, so that the model does not see them. */
  readonly toolDefinitions: readonly Json[];
  /** The tools that the model may call. */
  readonly tools: readonly Tool[];
  /** Whether the model must call a tool. */
  readonly toolRequired: boolean;
  /** A named function is called exactly once. */
  readonly calls: "one" | "many";
  /** The JSON Schema of the content. If undefined, free text. */
  readonly schema?: unknown;
  readonly thinking: boolean;
  /** Further variables of the template. */
  readonly templateVariables: Json;
  /** The number of alternatives to show of each token. If undefined, no log probabilities. */
  readonly logprobs?: number;
}

const bodySchema = Type.Object({
  ...chatSchema.properties,
  ...engineFields,
  max_completion_tokens: engineFields.max_tokens,
  parallel_tool_calls: optional(Type.Boolean()),
  chat_template_kwargs: optional(
    Type.Object({ enable_thinking: optional(Type.Boolean()), thinking: optional(Type.Boolean()) }),
  ),
});
const chatBody = bodyReader(bodySchema, checkTogether);
type Body = Static<typeof bodySchema>;

export function readChatRequest(given: unknown): ChatRequest {
  const body = chatBody.check(given);
  checkImages(imageFacts(body.messages), undefined);
  const generation = readGeneration(body);
  const variables = body.chat_template_kwargs ?? {};
  const effort = body.reasoning_effort ?? undefined;
  return {
    ...generation,
    maxTokens: body.max_completion_tokens ?? generation.maxTokens,
    ...readTools(body),
    messages: body.messages.map(readMessage),
    schema: readResponseFormat(body),
    thinking: variables.enable_thinking ?? variables.thinking ?? (effort !== undefined && effort !== "none"),
    templateVariables: { ...(effort !== undefined && { reasoning_effort: effort }), ...variables },
    logprobs: body.logprobs ? (body.top_logprobs ?? 0) : undefined,
  };
}

function readMessage(message: Body["messages"][number]): ChatMessage {
  const { role, content } = message;
  const calls = role === "assistant" ? message.tool_calls : undefined;
  return {
    ...message,
    // No template supports the newer name.
    role: role === "developer" ? "system" : role,
    content: typeof content === "string" ? content : (content ?? []).map(textOf).join("\n"),
    ...(calls && { tool_calls: calls.map(readToolCall) }),
  };
}

function textOf(part: { readonly text: string } | { readonly image_url: unknown }): string {
  return "text" in part ? part.text : "";
}

/** Templates expect the arguments as an object. Other arguments remain a string. */
function readToolCall(call: { readonly function: { readonly arguments: string } }): object {
  const { arguments: text } = call.function;
  const parsed = parseJson(text);
  return { ...call, function: { ...call.function, arguments: isObject(parsed) ? parsed : text } };
}

function readTools(body: Body): Pick<ChatRequest, "toolDefinitions" | "tools" | "toolRequired" | "calls"> {
  const { tools: toolDefinitions, tool_choice: choice } = body;
  const calls = body.parallel_tool_calls === false ? "one" : "many";
  if (!toolDefinitions || choice === "none") return { toolDefinitions: [], tools: [], toolRequired: false, calls };
  const tools = toolDefinitions.map(({ function: { name, parameters } }) => ({ name, parameters: parameters ?? {} }));
  if (typeof choice !== "object" || choice === null)
    return { toolDefinitions, tools, toolRequired: choice === "required", calls };
  const named = tools.filter((tool) => tool.name === choice.function.name);
  return { toolDefinitions, tools: named.slice(0, 1), toolRequired: true, calls: "one" };
}

function readResponseFormat({ response_format: format }: Body): unknown {
  if (format?.type === "json_object") return { type: "object" };
  return format?.type === "json_schema" ? format.json_schema!.schema : undefined;
}
