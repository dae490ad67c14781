/**
 * llama.cpp's server. Many field names that OpenAI does not have change its behaviour, so only known fields are sent.
 */
import { readConventionChunk } from "./chunk.ts";
import { chatBody, completionBody, embeddingBody } from "./convention-body.ts";
import type { ChatRequest, Dialect, EngineChunk, GenerationRequest, RawUsage } from "./dialect.ts";
import { withEnumPatterns } from "./enum-pattern.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import { proveReady, readMetrics, readVersion } from "./http-lifecycle.ts";
import { readConventionRefusal } from "./refusal.ts";
import { requiredCallsFormat } from "./required-calls.ts";
import { limitToContext, sharedContext } from "../shared-context.ts";

export const llamaServer: Dialect = {
  // It announces keep-alive, but closes the connection after each stream.
  keepsConnections: false,
  usagePerChoice: true,
  keepsSaltsApart: false,
  showsLife: "generating",
  requiredCallsAreText: true,
  chatBody: (request) => ({
    // llama-server passes arguments to any template, and templates reason by default.
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
  version: (endpoint, signal) => readVersion(endpoint, { path: "/props", name: "build_info" }, signal),
  metrics: readMetrics,
};

/** The window is one slot's. Requests without a free slot queue inside the engine. */
const properties = {
  path: "/props",
  read: ({ default_generation_settings: settings, total_slots: parallelMax }: Json) => ({
    windowTokens: isObject(settings) ? settings["n_ctx"] : undefined,
    parallelMax,
  }),
};

/** Seeds have 32 bits. The highest value means "random". */
const seedsMax = 2n ** 32n - 1n;

function ownFields({ sampling: { seed }, cacheSalt }: GenerationRequest) {
  return {
    // llama-server has no cache salt. It reuses the slot with the longest common prompt, whichever account sent that
    // prompt.
    cache_prompt: cacheSalt === undefined,
    top_k: 0,
    min_p: 0,
    seed: seed === undefined ? undefined : Number((seed < 0n ? -seed : seed) % seedsMax),
    stream_options: { include_usage: true },
    timings_per_token: true,
    // Sends progress events, which are signs of life. llama-server notices a lost client only while it sends.
    return_progress: true,
  };
}

/** With 0 alternatives llama-server omits the log probabilities of the chosen tokens too. */
function alternatives({ logprobs }: GenerationRequest): number | undefined {
  return logprobs === undefined ? undefined : Math.max(1, logprobs);
}

/**
 * llama-server's `required` allows text before the call, and a named function counts as `auto`. A schema applies from
 * the first character after the reasoning. With `none`, the template still shows the tools.
 */
function toolFields({ toolChoice, tools, oneCall }: ChatRequest) {
  if (toolChoice === "auto") return {};
  return { tool_choice: "none", response_format: requiredCallsFormat({ tools, toolChoice, oneCall }) };
}

/**
 * Only the response format is rewritten, because it becomes a grammar. Tool schemas stay, because the model reads them.
 */
function formatFields({ responseFormat: format }: ChatRequest) {
  if (format?.type !== "json_schema") return {};
  const { schema, ...described } = format.json_schema;
  return { response_format: { ...format, json_schema: { ...described, schema: withEnumPatterns(schema) } } };
}

/** llama-server's `timings` serve as running usage. */
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
