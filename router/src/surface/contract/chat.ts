/** Routes of the playground. Its requests are billed to the account, and their content is not stored. */
import { Type } from "typebox";
import { count, credits, everybody, id, object, orNull, type RouteTable } from "./route.ts";

export const chatContract = {
  chat: {
    summary:
      "Stream an answer to a request of POST /v1/chat/completions, which is checked, limited and billed as with a key; `stream` must be true. Besides the API's chunks, it sends `event: state` with {state: active} or {state: activating, usualMs: the recent waiting time, if known}, " +
      "While the request waits in a slot, it sends {state: waiting, position: 1 is the next request for the model, estimateMs: the estimated time left}, " +
      "at the end `event: done` with {promptTokens, completionTokens, reasoningTokens, credits, firstTokenMs, " +
      "tokensPerSecond, durationMs}, and `event: error` with the error body, status and retryAfterSeconds. Closing the connection stops the answer. " +
      "At the user's credit limit the answer is 429 insufficient_quota instead of the API's 401, because here 401 means that the session has ended",
    may: everybody,
    body: Type.Object({}, { description: "A body of POST /v1/chat/completions, with its rules and its largest size." }),
    readsBody: true,
    stream: "text/event-stream",
  },
  showChatCost: {
    summary: "Show what one of the caller's own answers in the playground cost. A stopped answer has no `event: done`",
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
