/** `POST /v1/completions`: the allow-list of its fields. */
import type { CompletionRequest } from "../engines/dialects/dialect.ts";
import type { Json } from "../engines/dialects/json.ts";
import { asText, integer } from "./fields.ts";
import { readGeneration, type RequestScope } from "./generation-request.ts";

export function readCompletionRequest(body: Json, scope: RequestScope): CompletionRequest {
  return {
    ...readGeneration(body, scope),
    kind: "completion",
    prompt: asText(body["prompt"], "prompt"),
    logprobs: integer(body, "logprobs", 0, 20),
  };
}
