/** Lifecycle calls that the dialects share: the readiness probe, and metrics. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { EngineFacts, EngineMetrics } from "../dialect-lifecycle.ts";
import type { EngineEndpoint } from "../engine.ts";
import { isObject, type Json } from "@weiche/shared/json.ts";
import { HttpConnection } from "../../http1/connection.ts";

interface Ask {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

const answerBytesMax = 1 << 20;
/** A high limit, because an engine with many processes exposes all series once per process. */
const metricsBytesMax = 4 << 20;

/** Sends a request on its own connection. Rejects, and closes it, if the answer exceeds `bytesMax`. */
async function ask(
  endpoint: EngineEndpoint,
  { method, path, body }: Ask,
  signal: AbortSignal,
  bytesMax = answerBytesMax,
): Promise<Answer> {
  signal.throwIfAborted();
  const connection = new HttpConnection(endpoint, systemClock);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  let status = 0;
  let bytes = 0;
  const parts: Buffer[] = [];
  const json = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  connection.send(
    { method, path, body: json, keep: false },
    {
      onHead: (given) => (status = given),
      onBody(part) {
        bytes += part.length;
        if (bytes > bytesMax) return reject(new Error(`the answer to ${path} exceeds ${bytesMax} bytes`));
        parts.push(part);
      },
      onEnd: () => resolve({ status, text: new TextDecoder().decode(Buffer.concat(parts)) }),
      onLost: reject,
    },
  );
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    connection.close();
  }
}

export class EngineAnswerError extends Error {
  readonly status: number;

  constructor(path: string, status: number) {
    super(`${path} answers ${status}`);
    this.status = status;
  }
}

/**
 * Returns the JSON of an answer with status 200, or undefined if it is empty. Other statuses throw an
 * `EngineAnswerError`.
 */
export async function askEngine(endpoint: EngineEndpoint, request: Ask, signal: AbortSignal): Promise<unknown> {
  const { status, text } = await ask(endpoint, request, signal);
  if (status !== 200) throw new EngineAnswerError(request.path, status);
  return text === "" ? undefined : JSON.parse(text);
}

/** Reads a field of a page. Undefined if it is no text. */
export async function readVersion(
  endpoint: EngineEndpoint,
  { path, name }: { readonly path: string; readonly name: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const page = await askEngine(endpoint, { method: "GET", path }, signal);
  const version = isObject(page) ? page[name] : undefined;
  return typeof version === "string" ? version : undefined;
}

export async function requireHealth(endpoint: EngineEndpoint, signal: AbortSignal): Promise<void> {
  await askEngine(endpoint, { method: "GET", path: "/health" }, signal);
}

interface FactsPage {
  readonly path: string;
  readonly read: (page: Json) => { readonly [Fact in keyof EngineFacts]?: unknown };
}

interface ReadinessOptions {
  /** `/health` and `/v1/models` may answer 404. */
  readonly mayLackPages?: boolean;
  /** Page with the engine's limits, read if `/v1/models` has none. It may be missing. */
  readonly facts?: FactsPage;
  readonly onLoaded: (() => void) | undefined;
}

/**
 * `/health` alone proves nothing. A sleeping engine answers it, and another process that holds the port may answer it,
 * too.
 */
export async function proveReady(
  endpoint: EngineEndpoint,
  model: ModelId,
  { mayLackPages = false, facts, onLoaded }: ReadinessOptions,
  signal: AbortSignal,
): Promise<EngineFacts> {
  const page = async (path: string): Promise<Answer | undefined> => {
    const answer = await ask(endpoint, { method: "GET", path }, signal);
    if (answer.status === 404 && mayLackPages) return undefined;
    if (answer.status !== 200) throw new Error(`${path} answers ${answer.status}`);
    return answer;
  };
  const [, models] = await Promise.all([page("/health"), page("/v1/models")]);
  const entry = models && entryOf(models.text, model);
  if (models && !entry) throw new Error(`/v1/models does not name ${model}`);
  onLoaded?.();
  await proveOutput(endpoint, model, signal);
  const windowTokens = entry?.["max_model_len"];
  const said = windowTokens === undefined && facts ? await readFacts(endpoint, facts, signal) : { windowTokens };
  return Object.fromEntries(
    Object.entries(said).filter(([fact, value]) =>
      fact === "cutsTexts" ? typeof value === "boolean" : isCount(value),
    ),
  );
}

async function readFacts(endpoint: EngineEndpoint, { path, read }: FactsPage, signal: AbortSignal): Promise<object> {
  const { status, text } = await ask(endpoint, { method: "GET", path }, signal);
  return status === 200 ? read(parsed(text)) : {};
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function entryOf(text: string, model: ModelId): Json | undefined {
  const { data } = parsed(text);
  return Array.isArray(data) ? data.find((entry) => isObject(entry) && namesOf(entry).includes(model)) : undefined;
}

/** llama-server has one entry for all names of its model. The id is the first name in alphabetical order. */
function namesOf({ id, aliases }: Json): unknown[] {
  return Array.isArray(aliases) ? [id, ...(aliases as unknown[])] : [id];
}

function parsed(text: string): Json {
  const page: unknown = JSON.parse(text);
  return isObject(page) ? page : {};
}

/** Requires one token or, if the model generates none, one embedding. */
async function proveOutput(endpoint: EngineEndpoint, model: ModelId, signal: AbortSignal): Promise<void> {
  const token = { model, prompt: "1", max_tokens: 1, temperature: 0 };
  const generated = await ask(endpoint, { method: "POST", path: "/v1/completions", body: token }, signal);
  if (generated.status === 200 && hasToken(parsed(generated.text))) return;
  const text = { model, input: "1" };
  const embedded = await ask(endpoint, { method: "POST", path: "/v1/embeddings", body: text }, signal);
  if (embedded.status === 200 && hasVector(parsed(embedded.text))) return;
  throw new Error(`no token (${generated.status}) and no embedding (${embedded.status})`);
}

/** A broken engine, or one about to sleep, also answers 200, with no output and an unusual `finish_reason`. */
function hasToken({ choices, usage }: Json): boolean {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (!isObject(choice)) return false;
  const { text, finish_reason: end } = choice;
  if (end !== undefined && end !== null && end !== "length" && end !== "stop") return false;
  const count = isObject(usage) ? usage["completion_tokens"] : undefined;
  return (typeof text === "string" && text !== "") || isCount(count) || typeof end === "string";
}

function hasVector({ data }: Json): boolean {
  return Array.isArray(data) && data.length > 0;
}

/**
 * Metric names differ between engines and versions. The first one present counts. Without any, the value is unknown.
 */
const names = {
  running: ["vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"],
  waiting: ["vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred", "te_queue_size"],
  kvCacheUse: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"],
  prefixCacheHitRate: ["sglang:cache_hit_rate"],
} as const;

/** Counters that change only while the engine works. Counters of its HTTP front (requests, CPU time) prove nothing. */
const workCounters = [
  ...["vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:iteration_tokens_total_count"],
  ...["sglang:prompt_tokens_total", "sglang:generation_tokens_total"],
  ...["llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total", "llamacpp:n_decode_total"],
  ...["te_request_success", "te_embed_success"],
];

/** Pairs of a counter of cached prompt tokens and the counters that add up to all prompt tokens. */
const prefixCounters = [
  ["vllm:prefix_cache_hits_total", ["vllm:prefix_cache_queries_total"]],
  ["vllm:gpu_prefix_cache_hits_total", ["vllm:gpu_prefix_cache_queries_total"]],
  ["llamacpp:prompt_tokens_cached_total", ["llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_tokens_total"]],
] as const;

export async function readMetrics(endpoint: EngineEndpoint, signal: AbortSignal): Promise<EngineMetrics> {
  const { status, text } = await ask(endpoint, { method: "GET", path: "/metrics" }, signal, metricsBytesMax);
  if (status !== 200) throw new Error(`/metrics answers ${status}`);
  return parseMetrics(text);
}

export function parseMetrics(text: string): EngineMetrics {
  const series = new Map<string, number[]>();
  for (const [, name, value] of text.matchAll(/^([a-z_]+(?::[a-z_]+)?)(?:\{[^\n]*\})? (\S+)/gm)) {
    if (!Number.isFinite(Number(value))) continue;
    series.getOrInsertComputed(name!, () => []).push(Number(value));
  }
  const work = workCounters.flatMap((name) => series.get(name) ?? []);
  const first = (of: readonly string[]) => of.map((name) => series.get(name)).find((values) => values !== undefined);
  const sum = (values: readonly number[] = []) => values.reduce((total, value) => total + value, 0);
  const present = (values?: readonly number[]) => values && sum(values);
  // An engine with several processes has one series per process.
  const mean = (values?: readonly number[]) => values && sum(values) / values.length;
  const hitRate = prefixCounters
    .filter(([hits]) => series.has(hits))
    .map(([hits, all]) => sum(series.get(hits)) / sum(all.map((name) => sum(series.get(name)))))
    .find(Number.isFinite);
  return {
    running: present(first(names.running)),
    waiting: present(first(names.waiting)),
    kvCacheUse: mean(first(names.kvCacheUse)),
    prefixCacheHitRate: mean(first(names.prefixCacheHitRate)) ?? hitRate,
    work: work.length > 0 ? sum(work) : undefined,
  };
}
