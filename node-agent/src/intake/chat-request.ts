/** `POST /v1/chat/completions`: checks the body and applies the model's rules. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { Declared } from "@weiche/shared/convention/body-reader.ts";
import { chatBody, chatFacts, imagesOf, type ChatBody } from "@weiche/shared/convention/chat.ts";
import { isWholeBase64, notAnImage, plainImageUrl } from "@weiche/shared/convention/images.ts";
import { checkModelRules } from "@weiche/shared/convention/model-rules.ts";
import { invalid } from "@weiche/shared/errors.ts";
import { mendTexts, scanJson } from "@weiche/shared/http/json-guard.ts";
import { isObject, parseJson, type Json } from "@weiche/shared/json.ts";
import type { ChatRequest, ResponseFormat, Thinking } from "../engines/dialects/dialect.ts";
import { completedJson, unwrapped } from "../engines/dialects/json-text.ts";
import { readGeneration, type RequestScope } from "./generation-request.ts";
import { plainSchema } from "./plain-schema.ts";

type Chat = Declared<ChatBody>;

/** `kept`: the same body, with its schemas and seed as the client wrote them. */
export function readChatRequest(given: Json, { rules }: RequestScope, kept: Json = given): ChatRequest {
  const body = chatBody.declared({ ...given, model: rules.id });
  const facts = chatFacts(body);
  checkModelRules(facts, rules);
  // The router keeps only the beginning of long strings.
  for (const { url, param } of imagesOf(body.messages)) if (!isWholeBase64(url)) throw invalid(param, notAnImage);
  return {
    ...readGeneration(body, kept["seed"]),
    maxTokens: facts.maxTokens,
    kind: "chat",
    messages: body.messages.map(forTemplate),
    logprobs: body.logprobs ? (body.top_logprobs ?? 0) : undefined,
    ...readTools(body, rules, kept),
    responseFormat: readResponseFormat(body, kept),
    thinking: readThinking(body, rules),
  };
}

type Message = Chat["messages"][number];

function forTemplate(message: Message, index: number): object {
  if (message.role === "developer") return { ...message, role: "system" }; // No template supports the newer name.
  if (message.role === "user") return { ...message, content: withPlainImages(message.content) };
  if (message.role !== "assistant") return message;
  // Templates join the content with text, so missing content must not become "None".
  const { role, content = "", tool_calls: calls = [] } = message;
  if (calls.length === 0) return { role, content };
  const told = calls.map((call, at) =>
    callForTemplate(call, `messages[${index}].tool_calls[${at}].function.arguments`),
  );
  return { role, content, tool_calls: told };
}

function withPlainImages(content: Extract<Message, { role: "user" }>["content"]): unknown {
  if (typeof content === "string") return content;
  return content.map((part) =>
    part.type === "image_url" ? { ...part, image_url: { url: plainImageUrl(part.image_url.url) } } : part,
  );
}

/** Longer arguments are not mended. No window has room for them. */
const mendedCharactersMax = 1 << 20;

interface EarlierCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

function callForTemplate({ id, function: { name, arguments: text } }: EarlierCall, at: string): object {
  return { id, type: "function", function: { name, arguments: callArguments(text, at) } };
}

/**
 * Returns the arguments in a form that templates and engines parse. Some clients send an empty string or `null` for a
 * call without arguments. What models forget to escape is escaped, as in answers. Arguments that the token limit cut off
 * are completed, because the service's own answers have them.
 */
function callArguments(text: string, at: string): string {
  const told = text.trim();
  if (told === "" || told === "null") return "{}";
  const read =
    readArguments(told) ??
    (told.length <= mendedCharactersMax ? readArguments(unwrapped(completedJson(told))) : undefined);
  if (read !== undefined) return read;
  throw invalid(at, "must be the text of a JSON object, as the model wrote it, or empty for a call without arguments");
}

/** Returns undefined if the text is not a JSON object. */
function readArguments(text: string): string | undefined {
  const bytes = Buffer.from(text);
  mendTexts(bytes);
  const mended = bytes.toString();
  return "problem" in scanJson(bytes) || !isObject(parseJson(mended)) ? undefined : mended;
}

function readTools(
  { tools: given = [], tool_choice: choice = "auto", parallel_tool_calls: parallel = true }: Chat,
  { toolsEnforced }: ModelRules,
  kept: Json,
): Pick<ChatRequest, "tools" | "toolChoice" | "oneCall" | "stopsAsToolCalls"> {
  const tools = given.map(({ type, function: { parameters, ...called } }, index) => {
    const schema =
      parameters &&
      plainSchema(within(kept, "tools", index, "function", "parameters"), `tools[${index}].function.parameters`);
    return { type, function: { ...called, parameters: schema } };
  });
  // If the prompt named the tools, the model would still call them, as text.
  if (choice === "none" || tools.length === 0) return { tools: [], toolChoice: "auto", stopsAsToolCalls: false };
  const wanted = typeof choice === "object" ? { name: choice.function.name } : choice;
  return {
    tools,
    toolChoice: toolsEnforced ? wanted : "auto",
    ...(!parallel && { oneCall: true }),
    stopsAsToolCalls: wanted !== "auto" && !toolsEnforced,
  };
}

function within(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((at, name) => (at as Record<string | number, unknown>)[name], value);
}

function readResponseFormat({ response_format: format }: Chat, kept: Json): ResponseFormat | undefined {
  if (format === undefined || format.type === "text") return undefined;
  if (format.type === "json_object") return { type: "json_object" };
  const { schema: _schema, ...described } = format.json_schema!;
  const schema = within(kept, "response_format", "json_schema", "schema");
  return {
    type: "json_schema",
    json_schema: { ...described, schema: plainSchema(schema, "response_format.json_schema.schema") },
  };
}

const effortsOfAllEngines: readonly string[] = ["low", "medium", "high"];

/**
 * A client may set the template's switch, the effort, or both. The switch turns reasoning on or off, and the effort
 * sets how much.
 */
function readThinking({ chat_template_kwargs: kwargs, reasoning_effort: effort }: Chat, rules: ModelRules): Thinking {
  const { mode, efforts, default: usual, templateKwargsAccepted: templateSwitch } = rules.reasoning;
  // The switch is sent all the same, because many templates reason by default. A model without reasoning gets no
  // effort.
  if (mode === "unavailable") return { on: false, templateSwitch };
  const on = kwargs?.enable_thinking ?? (effort === undefined ? mode === "default-on" : effort !== "none");
  const off = efforts.length === 0 || efforts.includes("none") ? "none" : undefined;
  const wanted = effort === undefined || effort === "none" ? undefined : knownEffort(effort, efforts);
  return { on, effort: on ? (wanted ?? usual) : off, templateSwitch };
}

/** A model without levels accepts any word. Engines refuse words that they do not know. */
function knownEffort(effort: string, efforts: readonly string[]): string {
  return efforts.includes(effort) || effortsOfAllEngines.includes(effort) ? effort : "medium";
}
