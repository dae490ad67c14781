/** The fields that chats and completions share, with the convention's defaults where a client says nothing. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import type { Declared } from "@weiche/shared/convention/body-reader.ts";
import type { ChatBody } from "@weiche/shared/convention/chat.ts";
import type { CompletionBody } from "@weiche/shared/convention/completions.ts";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import type { GenerationRequest } from "../engines/dialects/dialect.ts";

/** What holds for the request's model. */
export interface RequestScope {
  readonly rules: ModelRules;
}

export function readGeneration(body: Declared<ChatBody | CompletionBody>): Omit<GenerationRequest, "logprobs"> {
  const { seed, stop = [] } = body;
  return {
    model: asId<ModelId>(body.model),
    maxTokens: body.max_tokens,
    temperature: body.temperature ?? 1,
    topP: body.top_p ?? 1,
    presencePenalty: body.presence_penalty ?? 0,
    frequencyPenalty: body.frequency_penalty ?? 0,
    // 64 bits are allowed, of which JavaScript keeps 53.
    seed: seed === undefined ? undefined : seed % Number.MAX_SAFE_INTEGER,
    // An empty string would end llama-server's answer at once, and is refused by others.
    stop: [stop].flat().filter((text) => text !== ""),
    choices: body.n ?? 1,
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
  };
}
