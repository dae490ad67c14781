/** Routes of the test chat. It is billed to the account, and its content is not stored. */
import { Type } from "typebox";
import { count, credits, everybody, id, object, orNull, type RouteTable } from "./route.ts";

export const chatContract = {
  chat: {
    summary:
      "Stream an answer as the API does. Besides the API's chunks, it sends `event: state` with {state: active} or {state: activating, usualMs: the recent waiting time, if known}, " +
      "While the request waits in a slot, it sends {state: waiting, position: 1 is the next request for the model, estimateMs: the estimated time left}, " +
      "at the end `event: done` with {promptTokens, completionTokens, reasoningTokens, credits, firstTokenMs, " +
      "tokensPerSecond, durationMs}, and `event: error` with the error body, status and retryAfterSeconds. Closing the connection stops the answer. " +
      "At the user's credit limit the answer is 429 insufficient_quota instead of the API's 401, because here 401 means that the session has ended",
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
  showChatCost: {
    summary: "Show what one of the caller's own answers in the test chat cost. A stopped answer has no `event: done`",
    may: everybody,
    params: object({ id }),
    reply: object({
      usage: orNull(
        object(
          { promptTokens: count, completionTokens: count, credits },
          { description: "null until the node's usage record has been committed, usually within a second." },
        ),
      ),
    }),
  },
} as const satisfies RouteTable;
