/** vLLM, with sleep and wake. The development mode that these need makes it an engine for loopback only. */
import type { EngineMetrics } from "../dialect-lifecycle.ts";
import type { EngineEndpoint } from "../engine.ts";
import { readConventionChunk } from "./chunk.ts";
import { chatBody, completionBody, embeddingBody } from "./convention-body.ts";
import type { CountRequest, Dialect, GenerationRequest } from "./dialect.ts";
import { isObject } from "@weiche/shared/json.ts";
import { EngineAnswerError, askEngine, proveReady, readMetrics, requireHealth } from "./lifecycle.ts";
import { readConventionRefusal } from "./refusal.ts";
import { schemaBounds } from "./schema-bounds.ts";

export const vllm: Dialect = {
  keepsConnections: true,
  usagePerChoice: false,
  keepsSaltsApart: true,
  schemaBounds: schemaBounds["vllm"],
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
  metrics: measure,
};

/**
 * Its counters of tokens stand still until a prompt is read to its end, which can take minutes. What is used of its cache
 * grows with each part of the prompt, and is told by the process that does the work.
 */
async function measure(endpoint: EngineEndpoint, signal: AbortSignal): Promise<EngineMetrics> {
  const { work, ...metrics } = await readMetrics(endpoint, signal);
  return { ...metrics, work: work === undefined ? undefined : work + (metrics.kvCacheUse ?? 0) };
}

/** Whatever the model's own generation_config says, nobody asked for it. */
function ownFields(request: GenerationRequest) {
  return { top_k: 0, min_p: 0, repetition_penalty: 1, cache_salt: request.cacheSalt };
}

/** Its refusals say "at least", since its tokeniser stops at the limit. */
function countRequests(body: object): readonly CountRequest[] {
  const { model, prompt, input, messages, tools, chat_template_kwargs } = body as Record<string, unknown>;
  const texts = prompt === undefined ? input : [prompt];
  const counted = Array.isArray(texts)
    ? texts.toSorted((a: string, b: string) => b.length - a.length).map((text) => ({ model, prompt: text }))
    : [{ model, messages, tools, chat_template_kwargs, add_generation_prompt: true }];
  return counted.map((each) => ({ path: "/tokenize", body: each }));
}

/**
 * `mode=wait` lets what still runs end: its default would abort it. A sleeping engine's health stays good, and a dead one
 * may have answered the call, so both are asked for afterwards.
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
    // The weights were thrown away: room for them, then the weights, then the room for the cache.
    await post("/wake_up?tags=weights");
    await post("/collective_rpc", { method: "reload_weights" });
    await post("/wake_up?tags=kv_cache");
  }
  // The cache is stale, and not every version forgets it by itself.
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
