/** Upper bounds of the tokens of a request, by its bytes. An agent believes its engine, and a router its node, up to them. */
import type { ModelRules } from "../catalogue.ts";
import { tokensPerByteMax, tokensPerImageMax } from "../catalogue-schema.ts";
import type { RequestFacts } from "./model-rules.ts";

/** What a template writes by itself: a system prompt of its own, how tools are called, marks around messages. */
const templateTokensMax = 4_096;
/** Tokens around each text that is embedded, such as its beginning and its end. */
const edgeTokensMax = 64;
/** Some engines count the token that ends an answer, some of these in addition to `max_tokens`. */
export const endTokensMax = 1;

/** `bytes`: size of the body, as it came or as an engine gets it. */
export function promptTokensMax(bytes: number, images: number): number {
  return bytes * tokensPerByteMax + templateTokensMax + images * tokensPerImageMax;
}

/** `bytes`: size of texts that go through no template. Normalisation may write a character of three bytes as 18. */
export function textTokensMax(bytes: number, texts: number): number {
  return bytes * tokensPerByteMax + texts * edgeTokensMax;
}

/**
 * The most tokens, input and output together, that a request may cost. The input is bounded by its bytes, and each answer
 * by `max_tokens`; input and answer fit the model's context window. `bytes`: of the body as it came.
 */
export function requestTokensMax(rules: ModelRules, facts: RequestFacts, bytes: number): number {
  const { answers, maxTokens = Infinity, images = [] } = facts;
  const { contextTokens, embeddings } = rules;
  if (embeddings) return Math.min(embeddings.inputTokens * answers, embeddedTokensMax(embeddings, facts, bytes));
  const answerTokensMax = Math.min(contextTokens, maxTokens + endTokensMax);
  return Math.min(contextTokens * answers, promptTokensMax(bytes, images.length) + answerTokensMax * answers);
}

/** The agent writes the instruction, in its template, before each text. */
function embeddedTokensMax(
  { instruction }: NonNullable<ModelRules["embeddings"]>,
  { answers, instructionBytes = 0 }: RequestFacts,
  bytes: number,
): number {
  const { default: usual = "", template = "" } = instruction ?? {};
  const written = Buffer.byteLength(template) + Math.max(instructionBytes, Buffer.byteLength(usual));
  return templateTokensMax + textTokensMax(bytes + answers * written, answers);
}
