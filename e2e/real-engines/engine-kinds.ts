/** The engines of the campaign: how an agent starts each, and which metrics count its work. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram, versionOf } from "./find-program.ts";
import { writeHuggingFace } from "./tiny-model/hugging-face.ts";
import { writeLora } from "./tiny-model/lora.ts";

const root = join(import.meta.dirname, "../..");
const tinyModel = join(root, "node-agent/models/weiche-tiny.gguf");

/** The number of simultaneous answers of each engine. */
export const places = 4;
/** The most tokens of prompt and answer together. */
export const windowTokens = 8_192;
/** The most tokens of a text to embed. */
export const inputTokens = 2_048;

export type KindName = "embedded" | "llama-server" | "vllm";

export interface EngineKind {
  readonly name: KindName;
  readonly version: string;
  /** The entries of `agent.yaml` without `model`. */
  readonly chat: (model: string) => object;
  readonly embeddings: (model: string) => object;
  /** An engine that serves two models at the same time. Undefined if the engine cannot. */
  readonly several?: SeveralModels;
  /** How long a start may take on a slow machine. */
  readonly startMs: number;
  /** The number of switches of the long check. Fewer for an engine that takes a minute to start. */
  readonly switches: number;
  /** The series of the engine's metrics whose sums count read tokens, generated tokens and running requests. */
  readonly counters: Readonly<Record<"prompt" | "completion" | "running", readonly string[]>>;
}

interface SeveralModels {
  /** The entry of `agent.yaml`. */
  readonly served: (models: readonly [string, string]) => object;
  /** The same with a command that does not serve the second model. */
  readonly unserved: (models: readonly [string, string]) => object;
  /** Whether the second model answers differently. */
  readonly differ: boolean;
}

/** An engine, or in `missing` what to install or which variable to set. */
export type Found = EngineKind | { readonly name: KindName; readonly missing: string };

export async function findEngines(): Promise<readonly Found[]> {
  return [embedded(), llamaServer(), await vllm()];
}

const quick = { startMs: 60_000, switches: 200 };

const vllmCounters = {
  prompt: ["vllm:prompt_tokens_total"],
  completion: ["vllm:generation_tokens_total"],
  running: ["vllm:num_requests_running", "vllm:num_requests_waiting"],
};

function embedded(): EngineKind {
  const packageFile = new URL("../package.json", import.meta.resolve("node-llama-cpp"));
  const { version } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };
  const main = "node-agent/embedded-engine/src/main.ts";
  const entry = (model: string, context: number, ...more: string[]) => ({
    ...{ dialect: "openai", maxConcurrent: places, directory: root },
    command: [
      ...[process.execPath, main, "--model", tinyModel, "--alias", model, "--port", "{port}"],
      ...["--parallel", String(places), "--context", String(context), ...more],
    ],
  });
  return {
    ...{ name: "embedded", version: `node-llama-cpp ${version}`, counters: vllmCounters, ...quick },
    chat: (model) => entry(model, windowTokens),
    embeddings: (model) => entry(model, inputTokens, "--embeddings"),
  };
}

/** Starts like in docs/install.md, but with one thread, because its threads spin while they wait. */
function llamaServer(): Found {
  const program = findProgram("llama-server", "WEICHE_LLAMA_SERVER");
  if (program === undefined)
    return {
      name: "llama-server",
      missing: "put llama-server (llama.cpp) in PATH, or set WEICHE_LLAMA_SERVER to its path",
    };
  const entry = (model: string, context: number, ...more: string[]) => ({
    ...{ dialect: "llama-server", maxConcurrent: places },
    command: [
      ...[program, "--model", tinyModel, "--alias", model, "--host", "127.0.0.1", "--port", "{port}", "--threads", "1"],
      ...["-np", String(places), "-c", String(context * places), "--metrics", "--threads-http", "64"],
      ...["--sse-ping-interval", "1", "--no-prefill-assistant", ...more],
    ],
  });
  return {
    ...{ name: "llama-server", version: versionOf(program), ...quick },
    chat: (model) => entry(model, windowTokens),
    several: {
      served: (models) => ({ models, ...entry(models.join(","), windowTokens) }),
      unserved: (models) => ({ models, ...entry(models[0], windowTokens) }),
      differ: false,
    },
    embeddings: (model) =>
      entry(
        model,
        inputTokens,
        ...["--embeddings", "--kv-unified", "-b", String(inputTokens), "-ub", String(inputTokens)],
      ),
    counters: {
      prompt: ["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"],
      completion: ["llamacpp:tokens_predicted_total"],
      running: ["llamacpp:requests_processing", "llamacpp:requests_deferred"],
    },
  };
}

/**
 * Starts without sleep, because the CPU build refuses `--enable-sleep-mode`. Starts without compilation, which takes
 * minutes at each start and does not change what an answer looks like.
 */
async function vllm(): Promise<Found> {
  const program = findProgram("vllm", "WEICHE_VLLM");
  if (program === undefined)
    return { name: "vllm", missing: "put vllm in PATH (pip install vllm), or set WEICHE_VLLM to its path" };
  const directory = mkdtempSync(join(tmpdir(), "weiche-tiny-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  await writeHuggingFace(tinyModel, directory);
  const adapter = join(directory, "adapter");
  writeLora(directory, adapter);
  const entry = (model: string, context: number, ...more: string[]) => ({
    ...{ dialect: "vllm", maxConcurrent: places },
    env: { HF_HUB_OFFLINE: "1", VLLM_NO_USAGE_STATS: "1", VLLM_CPU_KVCACHE_SPACE: "1" },
    command: [
      ...[program, "serve", directory, `--served-model-name=${model}`, "--host=127.0.0.1", "--port={port}"],
      ...[`--max-model-len=${context}`, `--max-num-seqs=${places}`, "--dtype=float32", "--enforce-eager", ...more],
    ],
  });
  const parsers = ["--reasoning-parser=qwen3", "--enable-auto-tool-choice", "--tool-call-parser=hermes"];
  const adapted = (models: readonly [string, string], ...more: string[]) => {
    const modules = ["--lora-modules", `${models[1]}=${adapter}`];
    return { models, ...entry(models[0], windowTokens, ...parsers, ...more, ...modules) };
  };
  return {
    ...{ name: "vllm", version: versionOf(program), startMs: 600_000, switches: 20, counters: vllmCounters },
    chat: (model) => entry(model, windowTokens, ...parsers),
    several: {
      served: (models) => adapted(models, "--enable-lora"),
      unserved: (models) => adapted(models),
      differ: true,
    },
    embeddings: (model) => entry(model, inputTokens, "--runner=pooling", "--convert=embed"),
  };
}
