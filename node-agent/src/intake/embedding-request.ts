/** `POST /v1/embeddings`: checks the body and applies the instruction of the model's rules. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { contextExceeded } from "@weiche/shared/convention/context-exceeded.ts";
import { embeddingBody, embeddingFacts } from "@weiche/shared/convention/embeddings.ts";
import { checkModelRules } from "@weiche/shared/convention/model-rules.ts";
import type { Json } from "@weiche/shared/json.ts";
import type { RequestScope } from "./generation-request.ts";

export interface EmbeddingRequest {
  readonly kind: "embedding";
  readonly texts: readonly string[];
  /** The client sent a list, so that each text has a position. */
  readonly isList: boolean;
  readonly dimensions: number;
  readonly format: "float" | "base64";
}

/** A longer text fits no embedding model, so no engine is asked. Writing 20 MB for an engine took 50 ms. */
const textCharactersMax = 1 << 20;

export function readEmbeddingRequest(given: Json, { rules }: RequestScope): EmbeddingRequest {
  const body = embeddingBody.declared({ ...given, model: rules.id });
  checkModelRules(embeddingFacts(body), rules);
  const { dimensions, inputTokens, instruction: rule } = rules.embeddings!;
  const texts = typeof body.input === "string" ? [body.input] : body.input;
  const isList = Array.isArray(body.input);
  const tooLong = texts.findIndex((text) => text.length > textCharactersMax);
  if (tooLong >= 0)
    throw contextExceeded(inputTokens, undefined, {
      ...{ input: "input", maxTokens: undefined, param: textName(isList, tooLong) },
    });
  const instruction = body.instruction ?? rule?.default;
  return {
    kind: "embedding",
    isList,
    texts: rule && instruction !== undefined ? texts.map((text) => instruct(rule, instruction, text)) : texts,
    dimensions: body.dimensions ?? dimensions.default,
    format: body.encoding_format ?? "float",
  };
}

/** Returns the name of a text for an error message. */
export function textName(isList: boolean, index: number): string {
  return isList ? `input[${index}]` : "input";
}

type InstructionRule = NonNullable<NonNullable<ModelRules["embeddings"]>["instruction"]>;

/** Replaces both places in one pass, so that a text that looks like the template stays unchanged. */
function instruct({ template }: InstructionRule, instruction: string, text: string): string {
  return template.replace(/\{(instruction|input)\}/g, (_, name) => (name === "input" ? text : instruction));
}
