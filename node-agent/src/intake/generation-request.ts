/** The fields that chats and completions share, with the convention's defaults where a client says nothing. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { Declared } from "@weiche/shared/convention/body-reader.ts";
import type { ChatBody } from "@weiche/shared/convention/chat.ts";
import type { CompletionBody } from "@weiche/shared/convention/completions.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import type { GenerationRequest } from "../engines/dialects/dialect.ts";

/** Rules of the model that the request is for. */
export interface RequestScope {
  readonly rules: ModelRules;
}

export function readGeneration(body: Declared<ChatBody | CompletionBody>): Omit<GenerationRequest, "logprobs"> {
  // Always sent: an engine would otherwise take defaults from the model or its command line.
  const { temperature = 1, top_p = 1, presence_penalty = 0, frequency_penalty = 0 } = body;
  // 64 bits are allowed, of which JavaScript keeps 53.
  const seed = body.seed === undefined ? undefined : body.seed % Number.MAX_SAFE_INTEGER;
  // An empty string would end llama-server's answer at once, and is refused by others.
  const stops = [body.stop ?? []].flat().filter((text) => text !== "");
  const stop = stops.length > 0 ? stops : undefined;
  return {
    model: asId<ModelId>(body.model),
    maxTokens: body.max_tokens,
    sampling: { temperature, top_p, presence_penalty, frequency_penalty, seed, stop },
    choices: body.n ?? 1,
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
  };
}
