/** `POST /v1/chat/completions`: the schema of its body and what the router must know of it. */
import { hash } from "node:crypto";
import { Type, type Static } from "typebox";
import { readImage } from "./images.ts";
import { compileSchema, generationParameters, invalid, optional } from "./request-schema.ts";
import type { ImageFacts, RequestFacts } from "./request-schema.ts";

const textPart = Type.Object({ type: Type.Literal("text"), text: Type.String() });
const imagePart = Type.Object({
  type: Type.Literal("image_url"),
  image_url: Type.Object({ url: Type.String({ description: "Base64 data URI of a PNG, JPEG, WebP or GIF." }) }),
});
const text = Type.Union([Type.String(), Type.Array(textPart)]);
const textAndImages = Type.Union([Type.String(), Type.Array(Type.Union([textPart, imagePart]))]);
const toolCall = Type.Object({
  id: Type.String(),
  type: optional(Type.Literal("function")),
  function: Type.Object({ name: Type.String(), arguments: Type.String() }),
});

const messageSchemas = {
  system: Type.Object({ role: Type.Literal("system"), content: text }),
  user: Type.Object({ role: Type.Literal("user"), content: textAndImages }),
  assistant: Type.Object({
    role: Type.Literal("assistant"),
    content: optional(text),
    tool_calls: optional(Type.Array(toolCall)),
  }),
  tool: Type.Object({ role: Type.Literal("tool"), content: text, tool_call_id: Type.String({ minLength: 1 }) }),
};
type Role = keyof typeof messageSchemas;
const roles = Object.keys(messageSchemas) as Role[];

const jsonObject = Type.Object(
  {},
  {
    description:
      "A JSON Schema. One that would cost the engine too much (repetitions within repetitions, very many optional properties, alternatives or values) is 400 with its place as param.",
  },
);
const parameters = {
  ...generationParameters,
  max_completion_tokens: optional(Type.Integer({ minimum: 1, description: "The same as max_tokens; it wins." })),
  logprobs: optional(Type.Boolean()),
  top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
  tools: optional(
    Type.Array(
      Type.Object({
        type: Type.Literal("function"),
        function: Type.Object({
          name: Type.String({ minLength: 1 }),
          description: optional(Type.String()),
          parameters: optional(jsonObject),
        }),
      }),
    ),
  ),
  tool_choice: optional(
    Type.Union([
      Type.Enum(["auto", "none", "required"]),
      Type.Object({ type: Type.Literal("function"), function: Type.Object({ name: Type.String() }) }),
    ]),
  ),
  response_format: optional(
    Type.Object({
      type: Type.Enum(["text", "json_object", "json_schema"]),
      json_schema: optional(Type.Object({ name: Type.String(), schema: jsonObject, strict: optional(Type.Boolean()) })),
    }),
  ),
  reasoning_effort: optional(Type.String({ description: "none switches reasoning off; levels depend on the model." })),
  chat_template_kwargs: optional(Type.Object({ enable_thinking: optional(Type.Boolean()) })),
};

/** As it is documented. It is checked in steps, message by message, so that a mistake can be told precisely. */
export const chatSchema = Type.Object({
  ...parameters,
  messages: Type.Array(Type.Union(Object.values(messageSchemas)), { minItems: 1 }),
});

const readBody = compileSchema(
  Type.Object({ ...parameters, messages: Type.Array(Type.Object({ role: Type.Enum(roles) }), { minItems: 1 }) }),
);
const looseContent = Type.Union([Type.String(), Type.Array(Type.Object({ type: Type.String() }))]);
const readMessage = {
  system: compileSchema(Type.Object({ content: looseContent })),
  user: compileSchema(Type.Object({ content: looseContent })),
  assistant: compileSchema(
    Type.Object({ content: optional(looseContent), tool_calls: messageSchemas.assistant.properties.tool_calls }),
  ),
  tool: compileSchema(
    Type.Object({ content: looseContent, tool_call_id: messageSchemas.tool.properties.tool_call_id }),
  ),
};
const readTextPart = compileSchema(textPart);
const readImagePart = compileSchema(imagePart);

type ChatBody = Static<ReturnType<typeof Type.Object<typeof parameters>>>;

export function readChat(value: unknown): Omit<RequestFacts, "digest"> {
  const body = readBody(value);
  const images: ImageFacts[] = [];
  body.messages.forEach((message, index) => checkMessage(message, message.role as Role, `messages[${index}]`, images));
  checkTools(body);
  if (body.response_format?.type === "json_schema" && !body.response_format.json_schema)
    throw invalid("response_format.json_schema", "is required for this type");
  if (body.top_logprobs && body.logprobs !== true) throw invalid("top_logprobs", "needs logprobs to be true");
  const maxTokensParam = body.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens";
  const maxTokens = body[maxTokensParam];
  return {
    model: body.model,
    conversation: beginning(body.messages),
    answers: body.n ?? 1,
    templateKwargs: body.chat_template_kwargs != null,
    images,
    ...(maxTokens == null ? {} : { maxTokens, maxTokensParam }),
    ...(body.reasoning_effort == null ? {} : { reasoningEffort: body.reasoning_effort }),
  };
}

/** More than any model takes: what is known of each is handed from thread to thread. */
const imagesMax = 1_000;

function checkMessage(message: object, role: Role, at: string, images: ImageFacts[]): void {
  const { content, ...rest } = readMessage[role](message, at) as { content?: unknown; tool_calls?: unknown };
  // An answer that called tools, or that ended while reasoning, has `null` as content; it may be sent back as it came.
  if (role === "assistant" && content === undefined && rest.tool_calls == null)
    throw invalid(`${at}.content`, "is required without tool_calls");
  if (!Array.isArray(content)) return;
  content.forEach((part: { type: string }, index) => {
    const partAt = `${at}.content[${index}]`;
    if (part.type === "text") readTextPart(part, partAt);
    else if (part.type !== "image_url") throw invalid(`${partAt}.type`, "must be one of text, image_url");
    else if (role !== "user") throw invalid(`${partAt}.type`, "images go into user messages");
    else if (images.length === imagesMax)
      throw invalid("messages", `at most ${imagesMax} images are taken per request`);
    else images.push(readImage(readImagePart(part, partAt).image_url.url, `${partAt}.image_url.url`));
  });
}

function checkTools({ tools, tool_choice: choice }: ChatBody): void {
  if (choice === "required" && !tools?.length) throw invalid("tool_choice", "needs tools");
  if (typeof choice !== "object" || choice === null) return;
  if (!tools?.some((tool) => tool.function.name === choice.function.name))
    throw invalid("tool_choice", "names a function that is not in tools");
}

/** Of so many messages, and of so many characters of each, since a hash of it is made for every request. */
const [beginningMessages, beginningCharacters] = [2, 1_024];

function beginning(messages: readonly object[]): string {
  const first = messages.slice(0, beginningMessages).map((message) => {
    const { role, content } = message as { role: string; content?: unknown };
    const whole = typeof content === "string" ? content : JSON.stringify(content ?? null);
    return [role, whole.slice(0, beginningCharacters)];
  });
  return hash("sha256", JSON.stringify(first));
}
