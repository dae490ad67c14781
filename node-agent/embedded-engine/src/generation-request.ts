/** The fields that chat and text completions share, with OpenAI's defaults where a client says nothing. */
import type { Fields } from "./fields.ts";
import { invalid } from "./request-error.ts";

export interface Sampling {
  readonly temperature: number;
  readonly topP: number;
  /** 0: all tokens. */
  readonly topK: number;
  readonly minP: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  /** Absent: by chance. */
  readonly seed?: number;
}

export interface GenerationRequest {
  readonly sampling: Sampling;
  /** Absent: as much as the context holds. */
  readonly maxTokens?: number;
  readonly choices: number;
  readonly stop: readonly string[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Usage in every chunk, so that who cuts the stream knows what was generated. */
  readonly continuousUsage: boolean;
  /** What another one has left in a context is not used. */
  readonly cacheSalt?: string;
}

/** As many as the agent passes on. */
const stopsMax = 64;

export function readGeneration(fields: Fields): GenerationRequest {
  const maxTokens = fields.integer("max_completion_tokens", 1, 2 ** 31) ?? fields.integer("max_tokens", 1, 2 ** 31);
  const seed = fields.integer("seed", Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const usage = fields.object("stream_options") ?? {};
  const cacheSalt = fields.string("cache_salt");
  return {
    sampling: {
      temperature: fields.number("temperature", 0, 2) ?? 1,
      topP: fields.number("top_p", 0, 1) ?? 1,
      topK: Math.max(0, fields.integer("top_k", -1, 2 ** 31) ?? 0),
      minP: fields.number("min_p", 0, 1) ?? 0,
      presencePenalty: fields.number("presence_penalty", -2, 2) ?? 0,
      frequencyPenalty: fields.number("frequency_penalty", -2, 2) ?? 0,
      ...(seed !== undefined && { seed }),
    },
    ...(maxTokens !== undefined && { maxTokens }),
    choices: fields.integer("n", 1, 128) ?? 1,
    stop: readStop(fields),
    stream: fields.boolean("stream") ?? false,
    includeUsage: usage["include_usage"] === true,
    continuousUsage: usage["include_usage"] === true && usage["continuous_usage_stats"] === true,
    ...(cacheSalt !== undefined && { cacheSalt }),
  };
}

function readStop(fields: Fields): string[] {
  const value = fields.get("stop") ?? [];
  const stop = Array.isArray(value) ? (value as unknown[]) : [value];
  if (stop.length > stopsMax) throw invalid(`'stop' may have at most ${stopsMax} entries`, "stop");
  if (!stop.every((text) => typeof text === "string" && text !== ""))
    throw fields.wrong("stop", "a string that is not empty, or an array of such");
  return stop as string[];
}
