/** The fields that chats and completions share, with the convention's defaults. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { Declared } from "@weiche/shared/convention/body-reader.ts";
import type { ChatBody } from "@weiche/shared/convention/chat.ts";
import type { CompletionBody } from "@weiche/shared/convention/completions.ts";
import { invalid } from "@weiche/shared/errors.ts";
import { keptNumber } from "@weiche/shared/http/kept-json.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import type { GenerationRequest } from "../engines/dialects/dialect.ts";

/** The rules of the requested model. */
export interface RequestScope {
  readonly rules: ModelRules;
}

/** `seed`: as the client wrote it. */
export function readGeneration(
  body: Declared<ChatBody | CompletionBody>,
  seed: unknown,
): Omit<GenerationRequest, "logprobs"> {
  // Always sent, because an engine would otherwise use defaults of the model or its command line.
  const { temperature = 1, top_p = 1, presence_penalty = 0, frequency_penalty = 0 } = body;
  // An empty string would end llama-server's answer at once, and other engines refuse it.
  const stops = [body.stop ?? []].flat().filter((text) => text !== "");
  const stop = stops.length > 0 ? stops : undefined;
  return {
    model: asId<ModelId>(body.model),
    maxTokens: body.max_tokens,
    sampling: { temperature, top_p, presence_penalty, frequency_penalty, seed: readSeed(seed), stop },
    choices: body.n ?? 1,
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
  };
}

/** Throws a 400 for a seed of more than 64 bits. The schema cannot check this, because it sees rounded numbers. */
function readSeed(seed: unknown): bigint | undefined {
  if (seed == null) return undefined;
  const whole = BigInt(keptNumber(seed) ?? (seed as number));
  if (BigInt.asIntN(64, whole) !== whole) throw invalid("seed", "must be an integer of 64 bits");
  return whole;
}
