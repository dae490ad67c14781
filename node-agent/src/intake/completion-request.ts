import { completionBody, completionFacts, promptOf } from "@weiche/shared/convention/completions.ts";
import { checkModelRules } from "@weiche/shared/convention/model-rules.ts";
import type { Json } from "@weiche/shared/json.ts";
import type { CompletionRequest } from "../engines/dialects/dialect.ts";
import { readGeneration, type RequestScope } from "./generation-request.ts";

/** `kept`: the same body, with its seed as the client wrote it. */
export function readCompletionRequest(given: Json, { rules }: RequestScope, kept: Json = given): CompletionRequest {
  const body = completionBody.declared({ ...given, model: rules.id });
  checkModelRules(completionFacts(body), rules);
  return { ...readGeneration(body, kept["seed"]), kind: "completion", prompt: promptOf(body), logprobs: body.logprobs };
}
