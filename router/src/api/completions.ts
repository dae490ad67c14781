/** `POST /v1/completions` (legacy): continues a text without the model's chat template. */
import { hash } from "node:crypto";
import { Type } from "typebox";
import { compileSchema, generationParameters, optional, type RequestFacts } from "./request-schema.ts";

export const completionSchema = Type.Object({
  ...generationParameters,
  prompt: Type.String(),
  logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
});

const readBody = compileSchema(completionSchema);
const beginningCharacters = 1_024;

export function readCompletion(value: unknown): Omit<RequestFacts, "digest"> {
  const { model, prompt, n, max_tokens: maxTokens } = readBody(value);
  return {
    model,
    templateKwargs: false,
    images: [],
    answers: n ?? 1,
    conversation: hash("sha256", prompt.slice(0, beginningCharacters)),
    ...(maxTokens == null ? {} : { maxTokens }),
  };
}
