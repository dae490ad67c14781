/** The test chat. It is billed to the account; nothing of it is kept. */
import { Type } from "typebox";
import { everybody, object, type RouteTable } from "./route.ts";

export const chatContract = {
  chat: {
    summary:
      "Streams an answer by the same way as the API. Besides its chunks: `event: state` with {state: active} or {state: activating, usualMs: how long others waited lately, if any}, " +
      "at the end `event: done` with {promptTokens, completionTokens, reasoningTokens, credits, firstTokenMs, " +
      "tokensPerSecond, durationMs}, `event: error` with the error body, status and retryAfterSeconds. Closing it stops it. " +
      "At the user's credit limit it is 429 insufficient_quota, where the API answers 401: here that means a session that is over",
    may: everybody,
    body: object({
      model: Type.String({ minLength: 1, maxLength: 200 }),
      messages: Type.Array(
        object({ role: Type.Enum(["system", "user", "assistant"]), content: Type.String({ maxLength: 500_000 }) }),
        { minItems: 1, maxItems: 1_000 },
      ),
      reasoningEffort: Type.Optional(Type.String({ minLength: 1, maxLength: 40 })),
      maxTokens: Type.Optional(Type.Integer({ minimum: 1 })),
      temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
    }),
    bodyBytesMax: 1 << 20,
    stream: "text/event-stream",
  },
} as const satisfies RouteTable;
