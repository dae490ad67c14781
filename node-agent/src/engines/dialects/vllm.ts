/** vLLM, with sleep and wake. Sleep and wake need vLLM's development mode, which restricts the engine to loopback. */
import type { EngineMetrics } from "../dialect-lifecycle.ts";
import type { EngineEndpoint } from "../engine.ts";
import { readConventionChunk } from "./chunk.ts";
import { chatBody, completionBody, embeddingBody } from "./convention-body.ts";
import type { CountRequest, Dialect, GenerationRequest } from "./dialect.ts";
import { isObject } from "@weiche/shared/json.ts";
import { EngineAnswerError, askEngine, proveReady, readMetrics, readVersion, requireHealth } from "./http-lifecycle.ts";
import { readConventionRefusal } from "./refusal.ts";

export const vllm: Dialect = {
  keepsConnections: true,
  usagePerChoice: false,
  keepsSaltsApart: true,
  showsLife: "always",
  chatBody: (request) => ({ ...chatBody(request), ...ownFields(request) }),
  completionBody: (request) => ({ ...completionBody(request), ...ownFields(request) }),
  embeddingBody,
  readChunk: readConventionChunk,
  readRefusal: readConventionRefusal,
  countRequests,
  readiness: (endpoint, model, signal, onLoaded) => proveReady(endpoint, model, { onLoaded }, signal),
  sleep,
  isSleeping,
  wake,
  version: (endpoint, signal) => readVersion(endpoint, { path: "/version", name: "version" }, signal),
  metrics: measure,
};

/**
 * Adds KV cache use to the work counters, because token counters do not change for minutes while vLLM reads a long
 * prompt.
 */
async function measure(endpoint: EngineEndpoint, signal: AbortSignal): Promise<EngineMetrics> {
  const { work, ...metrics } = await readMetrics(endpoint, signal);
  return { ...metrics, work: work === undefined ? undefined : work + (metrics.kvCacheUse ?? 0) };
}

/**
 * Sends neutral values, because vLLM would otherwise apply the model's generation_config, which the client did not
 * request.
 */
function ownFields(request: GenerationRequest) {
  return { top_k: 0, min_p: 0, repetition_penalty: 1, cache_salt: request.cacheSalt };
}

/** vLLM's refusals only contain a lower bound, because its tokeniser stops at the limit. */
function countRequests(body: object): readonly CountRequest[] {
  const { model, prompt, input, messages, tools, chat_template_kwargs } = body as Record<string, unknown>;
  const texts = prompt === undefined ? input : [prompt];
  const counted = Array.isArray(texts)
    ? texts.toSorted((a: string, b: string) => b.length - a.length).map((text) => ({ model, prompt: text }))
    : [{ model, messages, tools, chat_template_kwargs, add_generation_prompt: true }];
  return counted.map((each) => ({ path: "/tokenize", body: each }));
}

/**
 * `mode=wait` lets running requests end, while the default aborts them. A sleeping engine stays healthy, a dead one
 * does not.
 */
async function sleep(endpoint: EngineEndpoint, level: 1 | 2, signal: AbortSignal): Promise<void> {
  await askEngine(endpoint, { method: "POST", path: `/sleep?level=${level}&mode=wait` }, signal);
  await Promise.all([requireSleeping(endpoint, true, signal), requireHealth(endpoint, signal)]);
}

async function wake(endpoint: EngineEndpoint, level: 1 | 2, signal: AbortSignal): Promise<void> {
  const post = (path: string, body?: object) => askEngine(endpoint, { method: "POST", path, body }, signal);
  if (level === 1) {
    await post("/wake_up");
  } else {
    // Level 2 discarded the weights. First their memory is allocated, then they are loaded, then the cache is
    // allocated.
    await post("/wake_up?tags=weights");
    await post("/collective_rpc", { method: "reload_weights" });
    await post("/wake_up?tags=kv_cache");
  }
  // The prefix cache is stale, and some versions do not reset it on their own.
  await post("/reset_prefix_cache").catch(passOverMissing);
  await requireSleeping(endpoint, false, signal);
}

function passOverMissing(error: unknown): void {
  if (!(error instanceof EngineAnswerError && error.status === 404)) throw error;
}

async function isSleeping(endpoint: EngineEndpoint, signal: AbortSignal): Promise<boolean> {
  const answer = await askEngine(endpoint, { method: "GET", path: "/is_sleeping" }, signal);
  const sleeping = isObject(answer) ? answer["is_sleeping"] : undefined;
  if (typeof sleeping !== "boolean") throw new Error("/is_sleeping says nothing");
  return sleeping;
}

async function requireSleeping(endpoint: EngineEndpoint, expected: boolean, signal: AbortSignal): Promise<void> {
  if ((await isSleeping(endpoint, signal)) !== expected) throw new Error(`/is_sleeping says ${!expected}`);
}
