/** Counters of the engine as Prometheus text, with vLLM's names, so that one reader and one dashboard fit both. */
export class Metrics {
  promptTokens = 0;
  /** Prompt tokens that an earlier request left in the context. */
  cachedTokens = 0;
  generatedTokens = 0;
}

export interface Load {
  readonly running: number;
  readonly waiting: number;
  /** The share of the room for tokens that running answers use, 0 to 1. */
  readonly contextUse: number;
}

export function metricsText(metrics: Metrics, load: Load, alias: string): string {
  const label = `{model_name="${alias.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"}`;
  const lines = (name: string, type: "gauge" | "counter", help: string, value: number) =>
    `# HELP vllm:${name} ${help}\n# TYPE vllm:${name} ${type}\nvllm:${name}${label} ${value}\n`;
  return (
    lines("num_requests_running", "gauge", "Answers being generated.", load.running) +
    lines("num_requests_waiting", "gauge", "Answers waiting for a free sequence.", load.waiting) +
    lines("kv_cache_usage_perc", "gauge", "Used part of the context, 0 to 1.", load.contextUse) +
    lines("prompt_tokens_total", "counter", "Prompt tokens read.", metrics.promptTokens) +
    lines("generation_tokens_total", "counter", "Tokens generated.", metrics.generatedTokens) +
    lines("prefix_cache_queries_total", "counter", "Prompt tokens looked up in a context.", metrics.promptTokens) +
    lines("prefix_cache_hits_total", "counter", "Prompt tokens found there.", metrics.cachedTokens)
  );
}
