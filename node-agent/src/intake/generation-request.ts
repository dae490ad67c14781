/** The fields that chats and completions share. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { GenerationRequest } from "../engines/dialects/dialect.ts";
import type { Json } from "../engines/dialects/json.ts";
import { asList, asObject, asText, flag, integer, number, optional, refuse } from "./fields.ts";

/** What holds for the request's model. */
export interface RequestScope {
  readonly rules: ModelRules;
}

export const tokensMax = 2 ** 31 - 1;
const choicesMax = 128;
const stopsMax = 64;

export function readGeneration(body: Json, { rules }: RequestScope): Omit<GenerationRequest, "logprobs"> {
  const options = optional(body, "stream_options", asObject) ?? {};
  return {
    model: rules.id,
    maxTokens: integer(body, "max_tokens", 1, tokensMax),
    temperature: number(body, "temperature", 0, 2) ?? 1,
    topP: number(body, "top_p", 0, 1) ?? 1,
    presencePenalty: number(body, "presence_penalty", -2, 2) ?? 0,
    frequencyPenalty: number(body, "frequency_penalty", -2, 2) ?? 0,
    seed: optional(body, "seed", readSeed),
    stop: optional(body, "stop", readStop) ?? [],
    choices: integer(body, "n", 1, choicesMax) ?? 1,
    stream: flag(body, "stream") ?? false,
    includeUsage: flag(options, "include_usage") ?? false,
  };
}

/** Up to 64 bits are allowed, of which JavaScript keeps 53. */
function readSeed(value: unknown): number {
  if (!Number.isInteger(value) || Math.abs(value as number) > 2 ** 63) return refuse("seed", "an integer of 64 bits");
  return (value as number) % Number.MAX_SAFE_INTEGER;
}

/** An empty string would end llama-server's answer at once, and is refused by others. */
function readStop(value: unknown): string[] {
  const texts = typeof value === "string" ? [value] : asList(value, "stop").map((text) => asText(text, "stop"));
  if (texts.length > stopsMax) return refuse("stop", `at most ${stopsMax} strings`);
  return texts.filter((text) => text !== "");
}
