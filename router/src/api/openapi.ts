/** Makes the OpenAPI 3.1 document of the public API from the schemas that check requests. */
import { Type, type TSchema } from "typebox";
import { optional } from "@weiche/shared/convention/body-reader.ts";
import { chatSchema } from "@weiche/shared/convention/chat.ts";
import { completionSchema } from "@weiche/shared/convention/completions.ts";
import { embeddingSchema } from "@weiche/shared/convention/embeddings.ts";

/** `baseUrl`: the address of the API without `/v1`. */
export function openApiDocument(baseUrl: string): object {
  return {
    openapi: "3.1.0",
    info: {
      title: "Language-Model API",
      version: "1",
      description:
        "Chat, embeddings and model listing in the convention of the widely used chat-completions API. Every path also " +
        "works without its prefix /v1. The answer to any other path or method is 403 with an HTML page " +
        "(the response Unsupported). Every answer has x-request-id. Clients must ignore unknown fields.",
    },
    servers: [{ url: baseUrl }],
    security: [{ key: [] }],
    paths: {
      "/v1/chat/completions": post("Chat, text generation, reasoning, tools, images", chatSchema, chatAnswer, true),
      "/v1/completions": post("Legacy text continuation without the chat template", completionSchema, textAnswer, true),
      "/v1/embeddings": post("Vectors for search and classification", embeddingSchema, embeddingAnswer, false),
      "/v1/models": {
        get: {
          summary: "Models that the calling key may use; no account limit applies",
          responses: {
            200: { ...content("The list", modelList), headers: headersOf("x-request-id") },
            ...refusals(["400", "401", "403", "500", "503"]),
          },
        },
      },
    },
    components: {
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
      headers,
      schemas: { Error: errorSchema },
      responses: {
        Unsupported: {
          description: "403 for a path that is not in this document, or for another method",
          headers: headersOf("x-request-id"),
          content: page,
        },
      },
    },
  };
}

const headers = {
  "x-request-id": {
    description: "The router's id of the request, in every answer.",
    required: true,
    schema: Type.String({ format: "uuid" }),
  },
  "retry-after": {
    description: "Seconds after which to retry. Present if a retry after a known time makes sense.",
    schema: Type.Integer({ minimum: 1 }),
  },
  "x-should-retry": {
    description: "Present if the quota is exhausted. It distinguishes this from a rate limit, as `error.code` does.",
    schema: Type.Literal("false"),
  },
  "www-authenticate": { description: "The authentication scheme of keys.", schema: Type.Literal("Bearer") },
};

function headersOf(...names: (keyof typeof headers)[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const page = { "text/html": { schema: Type.String({ description: "A page that contains no part of the request." }) } };

const count = Type.Integer({ minimum: 0 });

const errorSchema = Type.Object({
  error: Type.Object({
    message: Type.String({ description: "For display; may change." }),
    type: Type.String(),
    param: Type.Union([Type.String(), Type.Null()]),
    code: Type.String({ description: "For program logic." }),
  }),
});

const usage = Type.Object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: Type.Optional(Type.Object({ cached_tokens: count })),
  completion_tokens_details: Type.Optional(Type.Object({ reasoning_tokens: count })),
});

const toolCalls = Type.Array(
  Type.Object({
    id: Type.String(),
    type: Type.Literal("function"),
    function: Type.Object({ name: Type.String(), arguments: Type.String({ description: "JSON, made by the model." }) }),
  }),
);

const token = { token: Type.String(), logprob: Type.Number(), bytes: optional(Type.Array(Type.Integer())) };
const chatLogprobs = Type.Object({
  content: Type.Array(Type.Object({ ...token, top_logprobs: Type.Array(Type.Object(token)) })),
});

/** The shape of `logprobs` of legacy completions. */
const textLogprobs = Type.Object({
  tokens: Type.Array(Type.String()),
  token_logprobs: Type.Array(Type.Union([Type.Number(), Type.Null()])),
  top_logprobs: Type.Array(Type.Union([Type.Object({}, { additionalProperties: Type.Number() }), Type.Null()])),
  text_offset: Type.Array(count),
});

const chatAnswer = Type.Object({
  id: Type.String(),
  object: Type.Literal("chat.completion"),
  created: Type.Integer({ description: "Unix time in seconds." }),
  model: Type.String(),
  choices: Type.Array(
    Type.Object({
      index: count,
      message: Type.Object({
        role: Type.Literal("assistant"),
        content: Type.Union([Type.String(), Type.Null()]),
        reasoning_content: optional(Type.String()),
        tool_calls: optional(toolCalls),
      }),
      logprobs: optional(chatLogprobs),
      finish_reason: Type.Enum(["stop", "length", "tool_calls"]),
    }),
  ),
  usage,
});

const textAnswer = Type.Object({
  id: Type.String(),
  object: Type.Literal("text_completion"),
  created: Type.Integer(),
  model: Type.String(),
  choices: Type.Array(
    Type.Object({
      index: count,
      text: Type.String(),
      logprobs: optional(textLogprobs),
      finish_reason: Type.Enum(["stop", "length"]),
    }),
  ),
  usage,
});

const embeddingAnswer = Type.Object({
  object: Type.Literal("list"),
  model: Type.String(),
  data: Type.Array(
    Type.Object({
      object: Type.Literal("embedding"),
      index: count,
      embedding: Type.Union([Type.Array(Type.Number()), Type.String({ description: "Base64 of 32-bit floats." })]),
    }),
  ),
  usage: Type.Object({ prompt_tokens: count, total_tokens: count }),
});

const modelList = Type.Object({
  object: Type.Literal("list"),
  data: Type.Array(
    Type.Object({
      id: Type.String({ description: "Value for `model`." }),
      object: Type.Literal("model"),
      created: Type.Integer(),
      owned_by: Type.String(),
    }),
  ),
});

const refusalTexts = {
  "400": "Invalid request; `param` names the parameter",
  "401": "Key missing, wrong, revoked, expired or blocked",
  "403": "No active package, or the key may not use the model",
  "413": "Body over 20 MB (an HTML page)",
  "429": "Quota exhausted (do not retry), or rate limit reached (retry after `retry-after` seconds)",
  "500": "Internal error; retry with backoff",
  "503":
    "The model is being switched, in maintenance or overloaded, or an address sent too many requests (an HTML page); retry after " +
    "`retry-after` seconds",
  "504": "The request exceeded the time limit",
};
type RefusalStatus = keyof typeof refusalTexts;

const refusalHeaders: { readonly [status in RefusalStatus]?: readonly (keyof typeof headers)[] } = {
  "401": ["www-authenticate"],
  "429": ["retry-after", "x-should-retry"],
  "503": ["retry-after"],
};

function refusals(statuses: readonly RefusalStatus[]): object {
  const error = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } };
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: refusalTexts[status],
        headers: headersOf("x-request-id", ...(refusalHeaders[status] ?? [])),
        content: status === "413" ? page : status === "503" ? { ...error, ...page } : error,
      },
    ]),
  );
}

function content(description: string, schema: object): object {
  return { description, content: { "application/json": { schema } } };
}

function post(summary: string, body: TSchema, answer: TSchema, streams: boolean): object {
  const stream = { "text/event-stream": { schema: { type: "string", description: "Events `data: <chunk>`." } } };
  return {
    post: {
      summary,
      requestBody: { required: true, content: { "application/json": { schema: body } } },
      responses: {
        200: {
          description: streams ? "The answer; with `stream`, a stream that ends with `data: [DONE]`" : "The answer",
          headers: headersOf("x-request-id"),
          content: { "application/json": { schema: answer }, ...(streams ? stream : {}) },
        },
        ...refusals(Object.keys(refusalTexts) as RefusalStatus[]),
      },
    },
  };
}
