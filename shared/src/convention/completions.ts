/** `POST /v1/completions` (legacy): continues a text without the model's chat template. */
import { Type, type Static } from "typebox";
import { bodyReader, optional } from "./body-reader.ts";
import { generationFields, logprobsMax } from "./generation.ts";
import type { RequestFacts } from "./model-rules.ts";

export type CompletionBody = Static<typeof completionSchema>;

export const completionSchema = Type.Object({
  ...generationFields,
  prompt: Type.String(),
  logprobs: optional(Type.Integer({ minimum: 0, maximum: logprobsMax })),
});

export const completionBody = bodyReader(completionSchema);

export function completionFacts({ model, n, max_tokens: maxTokens }: CompletionBody): RequestFacts {
  return { model, embeds: false, answers: n ?? 1, maxTokens: maxTokens ?? undefined, maxTokensParam: "max_tokens" };
}
