/** `POST /v1/chat/completions`: the fields of its body, and rules about several fields. */
import { Type, type Static } from "typebox";
import { invalid } from "../errors.ts";
import { bodyReader, name, optional, worded } from "./body-reader.ts";
import { generationFields, logprobsMax } from "./generation.ts";
import { imageFormat, imageUrl, type ImageFacts } from "./images.ts";
import type { RequestFacts } from "./model-rules.ts";

export type ChatBody = Static<typeof chatSchema>;
type ChatMessage = ChatBody["messages"][number];

const textPart = Type.Object({ type: Type.Literal("text"), text: Type.String() });
const imagePart = Type.Object({ type: Type.Literal("image_url"), image_url: Type.Object({ url: imageUrl }) });
const textOnlyPart = Type.Object({
  type: worded(Type.Literal("text"), "must be text; only user messages may have images"),
  text: Type.String(),
});
/** The content of every message except messages of users. */
const textContent = Type.Union([Type.String(), Type.Array(textOnlyPart)]);
const toolCall = Type.Object({
  id: name(),
  type: optional(Type.Literal("function")),
  function: Type.Object({ name: name(), arguments: Type.String() }),
});

const messageSchemas = [
  Type.Object({ role: Type.Literal("system"), content: textContent }),
  Type.Object({
    role: Type.Literal("developer", { description: "The newer word for system. Models get it as system." }),
    content: textContent,
  }),
  Type.Object({
    role: Type.Literal("user"),
    content: Type.Union([Type.String(), Type.Array(Type.Union([textPart, imagePart]))]),
  }),
  Type.Object({
    role: Type.Literal("assistant"),
    content: optional(textContent),
    tool_calls: optional(Type.Array(toolCall)),
  }),
  Type.Object({
    role: Type.Literal("tool"),
    content: textContent,
    tool_call_id: name({ minLength: 1 }),
  }),
] as const;

const jsonSchema = Type.Object(
  {},
  {
    description:
      "A JSON Schema. A schema that costs the engine too much (nested repetitions, very many optional properties, alternatives or values) is refused with 400 and its place as param.",
  },
);

export const chatSchema = Type.Object({
  ...generationFields,
  max_completion_tokens: optional(
    Type.Integer({ minimum: 1, description: "The same as max_tokens, and takes precedence over it." }),
  ),
  logprobs: optional(Type.Boolean()),
  top_logprobs: optional(Type.Integer({ minimum: 0, maximum: logprobsMax })),
  tools: optional(
    Type.Array(
      Type.Object({
        type: Type.Literal("function"),
        function: Type.Object({
          name: name({ minLength: 1 }),
          description: optional(Type.String()),
          parameters: optional(jsonSchema),
        }),
      }),
    ),
  ),
  tool_choice: optional(
    Type.Union([
      Type.Enum(["auto", "none", "required"]),
      Type.Object({ type: Type.Literal("function"), function: Type.Object({ name: name() }) }),
    ]),
  ),
  parallel_tool_calls: optional(
    Type.Boolean({
      description: "If false, an answer has at most one tool call, if the model's engine supports this.",
    }),
  ),
  response_format: optional(
    Type.Object({
      type: Type.Enum(["text", "json_object", "json_schema"]),
      json_schema: optional(Type.Object({ name: name(), schema: jsonSchema, strict: optional(Type.Boolean()) })),
    }),
  ),
  reasoning_effort: optional(Type.String({ description: "none switches reasoning off; levels depend on the model." })),
  chat_template_kwargs: optional(Type.Object({ enable_thinking: optional(Type.Boolean()) })),
  messages: Type.Array(Type.Union([...messageSchemas]), { minItems: 1 }),
});

export const chatBody = bodyReader(chatSchema, checkTogether);

/** Throws a 400 for fields that are valid alone but not together. */
export function checkTogether(body: Omit<ChatBody, "model" | "messages"> & { messages: readonly AnyMessage[] }): void {
  body.messages.forEach(({ role, content, tool_calls: calls }, index) => {
    // An answer with tool calls, or one that ended while reasoning, has `null` as content. Clients may send it back
    // unchanged.
    if (role === "assistant" && content === undefined && calls == null)
      throw invalid(`messages[${index}].content`, "is required without tool_calls");
  });
  const { tools, tool_choice: choice, response_format: format } = body;
  if (choice === "required" && !tools?.length) throw invalid("tool_choice", "needs tools");
  if (typeof choice === "object" && choice && !tools?.some((tool) => tool.function.name === choice.function.name))
    throw invalid("tool_choice", "names a function that is not in tools");
  if (format?.type === "json_schema" && !format.json_schema)
    throw invalid("response_format.json_schema", "is required for this type");
  if (body.top_logprobs && body.logprobs !== true) throw invalid("top_logprobs", "needs logprobs to be true");
}

interface AnyMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: unknown;
}

export function chatFacts(body: ChatBody): RequestFacts {
  const maxTokensParam = body.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens";
  return {
    model: body.model,
    embeds: false,
    isStreamed: body.stream === true,
    answers: body.n ?? 1,
    maxTokens: body[maxTokensParam] ?? undefined,
    maxTokensParam,
    reasoningEffort: body.reasoning_effort ?? undefined,
    templateKwargs: body.chat_template_kwargs != null,
    images: imageFacts(body.messages),
  };
}

type WithContent = Pick<ChatMessage, "content">;

/** More images than any model accepts. Bounded, because facts about each image pass between threads. */
const imagesMax = 1_000;

export function imageFacts(messages: readonly WithContent[]): ImageFacts[] {
  const facts: ImageFacts[] = [];
  for (const { url, param } of imagesOf(messages)) {
    if (facts.length === imagesMax) throw invalid("messages", `at most ${imagesMax} images are accepted per request`);
    facts.push({ param, format: imageFormat(url) });
  }
  return facts;
}

/** Lists the images in the order of the messages. */
export function* imagesOf(
  messages: readonly WithContent[],
): Iterable<{ readonly url: string; readonly param: string }> {
  for (const [index, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [at, part] of content.entries())
      if (part.type === "image_url")
        yield { url: part.image_url.url, param: `messages[${index}].content[${at}].image_url.url` };
  }
}
