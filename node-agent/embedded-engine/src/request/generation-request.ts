/** The fields that chats and text completions share, with OpenAI's defaults. */
import { optional } from "@weiche/shared/convention/body-reader.ts";
import { generationFields, stopsMax } from "@weiche/shared/convention/generation.ts";
import { Type, type Static } from "typebox";

export interface Sampling {
  readonly temperature: number;
  readonly topP: number;
  /** 0 allows all tokens. */
  readonly topK: number;
  readonly minP: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  /** If undefined, the seed is random. */
  readonly seed?: number;
}

export interface GenerationRequest {
  readonly sampling: Sampling;
  /** If undefined, the context is the limit. */
  readonly maxTokens?: number;
  /** Goes on to `maxTokens`, as measurements need it. */
  readonly ignoresEnd: boolean;
  readonly choices: number;
  readonly stop: readonly string[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Sends usage in every chunk, so that a reader that breaks off knows what was generated. */
  readonly continuousUsage: boolean;
  /** Requests use what an earlier one with the same salt left in a context. If undefined, all requests share it. */
  readonly cacheSalt?: string;
}

const stopText = Type.String({ minLength: 1 });

/** The convention's fields, and fields that other engines also accept. */
export const engineFields = {
  ...generationFields,
  model: optional(Type.String()),
  max_tokens: optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 })),
  stop: optional(Type.Union([stopText, Type.Array(stopText, { maxItems: stopsMax })])),
  top_k: optional(Type.Integer({ minimum: -1, maximum: 2 ** 31 })),
  min_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
  stream_options: optional(
    Type.Object({
      include_usage: optional(Type.Boolean()),
      continuous_usage_stats: optional(Type.Boolean()),
    }),
  ),
  cache_salt: optional(Type.String()),
  ignore_eos: optional(Type.Boolean()),
};

const engineBody = Type.Object(engineFields);

export function readGeneration(body: Static<typeof engineBody>): GenerationRequest {
  const includeUsage = body.stream_options?.include_usage ?? false;
  return {
    sampling: {
      temperature: body.temperature ?? 1,
      topP: body.top_p ?? 1,
      topK: Math.max(0, body.top_k ?? 0),
      minP: body.min_p ?? 0,
      presencePenalty: body.presence_penalty ?? 0,
      frequencyPenalty: body.frequency_penalty ?? 0,
      seed: body.seed ?? undefined,
    },
    maxTokens: body.max_tokens ?? undefined,
    ignoresEnd: body.ignore_eos ?? false,
    choices: body.n ?? 1,
    stop: [body.stop ?? []].flat(),
    stream: body.stream ?? false,
    includeUsage,
    continuousUsage: includeUsage && (body.stream_options?.continuous_usage_stats ?? false),
    cacheSalt: body.cache_salt ?? undefined,
  };
}
