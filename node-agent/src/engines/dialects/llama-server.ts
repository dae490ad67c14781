/** llama.cpp's server. Many names that OpenAI does not know are live switches here: nothing but our own goes in. */
import { readConventionChunk } from "./chunk.ts";
import { chatBody, completionBody, embeddingBody } from "./convention-body.ts";
import type { ChatRequest, Dialect, EngineChunk, GenerationRequest, RawUsage } from "./dialect.ts";
import { withEnumPatterns } from "./enum-pattern.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import { proveReady, readMetrics } from "./lifecycle.ts";
import { readConventionRefusal } from "./refusal.ts";
import { requiredCallsFormat } from "./required-calls.ts";
import { limitToContext, sharedContext } from "../shared-context.ts";
import { schemaBounds } from "./schema-bounds.ts";

export const llamaServer: Dialect = {
  // It announces that it keeps connections, and closes each after a stream.
  keepsConnections: false,
  usagePerChoice: true,
  keepsSaltsApart: false,
  requiredCallsAreText: true,
  schemaBounds: schemaBounds["llama-server"],
  chatBody: (request) => ({
    // Any template takes arguments here, and one that nobody has told otherwise thinks.
    ...chatBody({ ...request, thinking: { ...request.thinking, templateSwitch: true } }),
    ...formatFields(request),
    ...toolFields(request),
    ...ownFields(request),
    top_logprobs: alternatives(request),
  }),
  completionBody: (request) => ({ ...completionBody(request), ...ownFields(request), logprobs: alternatives(request) }),
  embeddingBody,
  readChunk,
  readRefusal: readConventionRefusal,
  readiness: (endpoint, model, signal, onLoaded) =>
    proveReady(endpoint, model, { facts: properties, onLoaded }, signal),
  onCommandLine: {
    program: "llama-server",
    read(facts, command) {
      const shared = sharedContext(command);
      return shared ? limitToContext(facts, shared) : facts;
    },
  },
  metrics: readMetrics,
};

/** The window is that of one of its slots. What finds none queues. */
const properties = {
  path: "/props",
  read: ({ default_generation_settings: settings, total_slots: parallelMax }: Json) => ({
    windowTokens: isObject(settings) ? settings["n_ctx"] : undefined,
    parallelMax,
  }),
};

/** Taken as 32 bits; the highest means "by chance". */
const seedsMax = 2 ** 32 - 1;

function ownFields({ seed, cacheSalt }: GenerationRequest) {
  return {
    // It has no salt, and takes the slot that holds most of the prompt, whoever sent that.
    cache_prompt: cacheSalt === undefined,
    top_k: 0,
    min_p: 0,
    seed: seed === undefined ? undefined : Math.abs(seed) % seedsMax,
    stream_options: { include_usage: true },
    timings_per_token: true,
    // A prompt being read shows signs of life, and only who shows some is noticed to have lost its client.
    return_progress: true,
  };
}

/** Asked for none, it says nothing of the tokens themselves either. */
function alternatives({ logprobs }: GenerationRequest): number | undefined {
  return logprobs === undefined ? undefined : Math.max(1, logprobs);
}

/**
 * Its own "required" lets text come before the call, up to the last token, and a named function is read as "auto". A schema
 * holds from the first character behind the thoughts; with "none" the template shows the tools all the same.
 */
function toolFields({ toolChoice, tools }: ChatRequest) {
  if (toolChoice === "auto") return {};
  return { tool_choice: "none", response_format: requiredCallsFormat({ tools, toolChoice }) };
}

/** Tools stay as they are: the model reads them. The format of an answer becomes a grammar and nothing else. */
function formatFields({ responseFormat: format }: ChatRequest) {
  if (format?.type !== "json_schema") return {};
  const { schema, ...described } = format.json_schema;
  return { response_format: { ...format, json_schema: { ...described, schema: withEnumPatterns(schema) } } };
}

/** Its timings are usage that runs along. */
function readChunk(event: Json): EngineChunk {
  const chunk = readConventionChunk(event);
  const { timings, prompt_progress: progress } = event;
  const usage = chunk.usage ?? (isObject(timings) ? timingsUsage(timings) : undefined);
  return { ...chunk, usage, promptTokens: isObject(progress) ? progress["total"] : usage?.prompt };
}

function timingsUsage({ cache_n: cached, prompt_n: read, predicted_n: completion }: Json): RawUsage {
  return {
    prompt: typeof cached === "number" && typeof read === "number" ? cached + read : undefined,
    completion,
    cached,
  };
}
