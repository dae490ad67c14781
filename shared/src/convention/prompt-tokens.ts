/**
 * Upper bounds of a request's tokens, by its bytes. Agents accept an engine's counts only up to them, and routers
 * accept a node's counts only up to them.
 */
import type { ModelRules } from "../catalogue.ts";
import { tokensPerByteMax, tokensPerImageMax } from "../catalogue-schema.ts";
import type { RequestFacts } from "./model-rules.ts";

/** Tokens that a template adds itself: its own system prompt, instructions for tool calls, marks around messages. */
const templateTokensMax = 4_096;
/** Tokens around each text to embed, such as marks of its beginning and end. */
export const edgeTokensMax = 64;
/** Tokens that may exceed `max_tokens`: some engines also count the token that ends an answer. */
export const endTokensMax = 1;

/** Returns the most tokens of a prompt. `bytes`: size of the body, as received or as sent to an engine. */
export function promptTokensMax(bytes: number, images: number): number {
  return bytes * tokensPerByteMax + templateTokensMax + images * tokensPerImageMax;
}

/**
 * Returns the most tokens of texts without a template. Normalisation may turn a character of three bytes into 18 bytes.
 */
export function textTokensMax(bytes: number, texts: number): number {
  return bytes * tokensPerByteMax + texts * edgeTokensMax;
}

/**
 * Returns the most tokens, input and output together, that a request may cost. Its bytes bound the input, `max_tokens`
 * each answer, and the model's context window input and answer together. `bytes`: size of the received body.
 */
export function requestTokensMax(rules: ModelRules, facts: RequestFacts, bytes: number): number {
  const { answers, maxTokens = Infinity, images = [] } = facts;
  const { contextTokens, embeddings } = rules;
  if (embeddings) return Math.min(embeddings.inputTokens * answers, embeddedTokensMax(embeddings, facts, bytes));
  const answerTokensMax = Math.min(contextTokens, maxTokens + endTokensMax);
  return Math.min(contextTokens * answers, promptTokensMax(bytes, images.length) + answerTokensMax * answers);
}

/** Returns the bytes that the agent adds to each text: the instruction in its template. */
function embeddedTokensMax(
  { instruction }: NonNullable<ModelRules["embeddings"]>,
  { answers, instructionBytes = 0 }: RequestFacts,
  bytes: number,
): number {
  const { default: usual = "", template = "" } = instruction ?? {};
  const written = Buffer.byteLength(template) + Math.max(instructionBytes, Buffer.byteLength(usual));
  return templateTokensMax + textTokensMax(bytes + answers * written, answers);
}
