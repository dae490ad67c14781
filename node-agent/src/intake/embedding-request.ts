/** `POST /v1/embeddings`: the allow-list of its fields, and the texts as the model is to see them. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { Json } from "../engines/dialects/json.ts";
import { contextExceeded } from "./context-exceeded.ts";
import { asList, asOneOf, asText, integer, optional, refuse } from "./fields.ts";
import type { RequestScope } from "./generation-request.ts";

export interface EmbeddingRequest {
  readonly kind: "embedding";
  readonly texts: readonly string[];
  readonly dimensions: number;
  readonly format: "float" | "base64";
}

const textsMax = 2_048;
/** A longer text fits into the window of no embedding model, and no engine is asked: writing 20 MB for it took 50 ms. */
const textCharactersMax = 1 << 20;

export function readEmbeddingRequest(body: Json, { rules }: RequestScope): EmbeddingRequest {
  const { embeddings } = rules;
  if (!embeddings) throw new ApiError("invalid_request", "This model makes no embeddings.", { param: "model" });
  const { min, max } = embeddings.dimensions;
  const input = body["input"];
  const texts = typeof input === "string" ? [input] : asList(input, "input").map((text) => asText(text, "input"));
  if (texts.length < 1 || texts.length > textsMax) return refuse("input", `1 to ${textsMax} texts`);
  if (texts.some((text) => text.length > textCharactersMax))
    throw contextExceeded(embeddings.inputTokens, undefined, { input: "input", maxTokens: undefined });
  const instruction = optional(body, "instruction", asText) ?? embeddings.instruction?.default;
  return {
    kind: "embedding",
    texts: instruction === undefined ? texts : texts.map((text) => instruct(embeddings, instruction, text)),
    dimensions: integer(body, "dimensions", min, max) ?? embeddings.dimensions.default,
    format: optional(body, "encoding_format", (value, at) => asOneOf(value, at, ["float", "base64"])) ?? "float",
  };
}

/** In one pass, so that a text that looks like the template stays as it is. */
function instruct({ instruction: rule }: NonNullable<ModelRules["embeddings"]>, instruction: string, text: string) {
  if (!rule) return text;
  return rule.template.replace(/\{(instruction|input)\}/g, (_, name) => (name === "input" ? text : instruction));
}
