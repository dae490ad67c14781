/** `POST /v1/chat/completions`: the allow-list of its fields, with the model's rules applied. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { ChatRequest, ResponseFormat, Thinking, Tool } from "../engines/dialects/dialect.ts";
import type { Json } from "../engines/dialects/json.ts";
import { readMessages } from "./chat-messages.ts";
import { asList, asObject, asOneOf, asText, flag, integer, optional, refuse } from "./fields.ts";
import { readGeneration, tokensMax, type RequestScope } from "./generation-request.ts";
import { plainSchema } from "./plain-schema.ts";

const alternativesMax = 20;
const effortsOfAllEngines: readonly string[] = ["low", "medium", "high"];

export function readChatRequest(body: Json, scope: RequestScope): ChatRequest {
  const { rules } = scope;
  const generation = readGeneration(body, scope);
  return {
    ...generation,
    maxTokens: integer(body, "max_completion_tokens", 1, tokensMax) ?? generation.maxTokens,
    kind: "chat",
    messages: readMessages(body, rules),
    logprobs: readLogprobs(body),
    ...readTools(body, rules),
    responseFormat: optional(body, "response_format", readResponseFormat),
    thinking: readThinking(body, rules),
  };
}

function readLogprobs(body: Json): number | undefined {
  const alternatives = integer(body, "top_logprobs", 0, alternativesMax) ?? 0;
  if (flag(body, "logprobs")) return alternatives;
  return alternatives > 0 ? refuse("top_logprobs", "together with logprobs") : undefined;
}

function readTools(
  body: Json,
  { toolsEnforced }: ModelRules,
): Pick<ChatRequest, "tools" | "toolChoice" | "stopsAsToolCalls"> {
  const tools = (optional(body, "tools", asList) ?? []).map((tool, index) => readTool(tool, `tools[${index}]`));
  const choice = optional(body, "tool_choice", readToolChoice) ?? "auto";
  // Left in the prompt, the model would call them all the same, as text.
  if (choice === "none" || tools.length === 0) return { tools: [], toolChoice: "auto", stopsAsToolCalls: false };
  if (typeof choice === "object" && !tools.some((tool) => tool.function.name === choice.name))
    return refuse("tool_choice", "a function among tools");
  return {
    tools,
    toolChoice: toolsEnforced ? choice : "auto",
    stopsAsToolCalls: choice !== "auto" && !toolsEnforced,
  };
}

function readTool(value: unknown, at: string): Tool {
  const tool = asObject(value, at);
  asOneOf(tool["type"], `${at}.type`, ["function"]);
  const called = asObject(tool["function"], `${at}.function`);
  const name = asText(called["name"], `${at}.function.name`);
  const description = optional(called, "description", asText);
  const parameters = optional(called, "parameters", asObject);
  return {
    type: "function",
    function: { name, description, parameters: parameters && plainSchema(parameters, `${at}.function.parameters`) },
  };
}

function readToolChoice(value: unknown): "auto" | "none" | "required" | { readonly name: string } {
  if (typeof value === "string") return asOneOf(value, "tool_choice", ["auto", "none", "required"]);
  const choice = asObject(value, "tool_choice");
  const called = asObject(choice["function"], "tool_choice.function");
  return { name: asText(called["name"], "tool_choice.function.name") };
}

function readResponseFormat(value: unknown): ResponseFormat | undefined {
  const format = asObject(value, "response_format");
  const type = asOneOf(format["type"], "response_format.type", ["text", "json_object", "json_schema"]);
  if (type === "text") return undefined;
  if (type === "json_object") return { type };
  const at = "response_format.json_schema";
  const described = asObject(format["json_schema"], at);
  return {
    type,
    json_schema: {
      name: asText(described["name"], `${at}.name`),
      schema: plainSchema(asObject(described["schema"], `${at}.schema`), `${at}.schema`),
      strict: flag(described, "strict"),
    },
  };
}

/** Both spellings at once: the template's switch says whether, the effort says how much. */
function readThinking(body: Json, { reasoning }: ModelRules): Thinking {
  const { mode, efforts, templateKwargsAccepted: templateSwitch } = reasoning;
  const kwargs = optional(body, "chat_template_kwargs", asObject);
  if (kwargs && !templateSwitch)
    throw new ApiError("invalid_request", "This model takes no chat_template_kwargs.", {
      param: "chat_template_kwargs",
    });
  const effort = optional(body, "reasoning_effort", asText);
  if (effort !== undefined && efforts.length > 0 && !efforts.includes(effort))
    return refuse("reasoning_effort", `one of ${efforts.join(", ")}`);
  // Said all the same: many templates think unless they are told not to. The effort is no word for a model without any.
  if (mode === "unavailable") return { on: false, templateSwitch };
  const switched = flag(kwargs ?? {}, "enable_thinking");
  const on = switched ?? (effort === undefined ? mode === "default-on" : effort !== "none");
  const off = efforts.length === 0 || efforts.includes("none") ? "none" : undefined;
  const wanted = effort === undefined || effort === "none" ? undefined : knownEffort(effort, efforts);
  return { on, effort: on ? (wanted ?? reasoning.default) : off, templateSwitch };
}

/** A model without levels takes any word; engines refuse those that they do not know. */
function knownEffort(effort: string, efforts: readonly string[]): string {
  return efforts.includes(effort) || effortsOfAllEngines.includes(effort) ? effort : "medium";
}
