/** `POST /v1/completions` (legacy): continues a text without the model's chat template. */
import { Type, type Static } from "typebox";
import { bodyReader, optional, worded } from "./body-reader.ts";
import { generationFields, logprobsMax } from "./generation.ts";
import type { RequestFacts } from "./model-rules.ts";

export type CompletionBody = Static<typeof completionSchema>;

const onePrompt = worded(Type.String(), "must be a text; token ids are not accepted");

export const completionSchema = Type.Object({
  ...generationFields,
  prompt: Type.Union([Type.String(), Type.Array(onePrompt, { minItems: 1, maxItems: 1 })]),
  logprobs: optional(Type.Integer({ minimum: 0, maximum: logprobsMax })),
});

export const completionBody = bodyReader(completionSchema);

/** Returns the text to continue. Some clients send it as a list. */
export function promptOf({ prompt }: CompletionBody): string {
  return typeof prompt === "string" ? prompt : prompt[0]!;
}

export function completionFacts({ model, n, max_tokens: maxTokens }: CompletionBody): RequestFacts {
  return { model, embeds: false, answers: n ?? 1, maxTokens: maxTokens ?? undefined, maxTokensParam: "max_tokens" };
}
