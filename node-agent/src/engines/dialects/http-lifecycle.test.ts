import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseMetrics } from "./http-lifecycle.ts";

const recording = (name: string) =>
  readFileSync(join(import.meta.dirname, "../../../test/recordings", `${name}.txt`), "utf8");

test("llama-server's metrics are read, idle and used", () => {
  expect(parseMetrics(recording("04-metrics-idle"))).toEqual({
    ...{ running: 0, waiting: 0, kvCacheUse: undefined, prefixCacheHitRate: undefined, work: 0 },
  });
  const { running, waiting, prefixCacheHitRate, work } = parseMetrics(recording("70-metrics-after"));
  expect(work).toBeGreaterThan(0);
  expect({ running, waiting }).toEqual({ running: 0, waiting: 0 });
  expect(prefixCacheHitRate).toBeCloseTo(836 / (836 + 953));
});

test("vLLM's metrics are read, of one engine process and of two", () => {
  const lines = (engine: number, running: number, use: string) =>
    `vllm:num_requests_running{engine="${engine}",model_name="a b"} ${running}.0\n` +
    `vllm:num_requests_waiting{engine="${engine}",model_name="a b"} 1.0\n` +
    `vllm:num_requests_waiting_by_reason{engine="${engine}",reason="capacity"} 1.0\n` +
    `vllm:kv_cache_usage_perc{engine="${engine}",model_name="a b"} ${use}\n` +
    `vllm:prefix_cache_queries_total{engine="${engine}"} 100.0\nvllm:prefix_cache_hits_total{engine="${engine}"} 2.5e+01\n`;
  expect(parseMetrics(lines(0, 3, "0.5"))).toEqual({
    ...{ running: 3, waiting: 1, kvCacheUse: 0.5, prefixCacheHitRate: 0.25 },
  });
  expect(parseMetrics(lines(0, 3, "0.5") + lines(1, 4, "0.1"))).toEqual({
    ...{ running: 7, waiting: 2, kvCacheUse: 0.3, prefixCacheHitRate: 0.25 },
  });
});

test("older names and other engines are read, and missing values are undefined", () => {
  expect(parseMetrics("vllm:gpu_cache_usage_perc 0.25\n")).toMatchObject({ kvCacheUse: 0.25, running: undefined });
  expect(
    parseMetrics(
      "sglang:num_running_reqs 2\nsglang:num_queue_reqs 1\nsglang:token_usage 0.1\nsglang:cache_hit_rate 0.9\n",
    ),
  ).toEqual({ running: 2, waiting: 1, kvCacheUse: 0.1, prefixCacheHitRate: 0.9 });
  expect(parseMetrics("te_queue_size 4\nvllm:num_requests_running NaN\n")).toMatchObject({
    ...{ waiting: 4, running: undefined },
  });
});

test("only counters of progress count as work, not the engine's memory, its queue, or the counters of its HTTP front", () => {
  const front =
    'process_cpu_seconds_total 12.5\nhttp_requests_total{handler="/metrics",status="2xx"} 9.0\n' +
    'vllm:num_requests_running{engine="0"} 1.0\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n';
  expect(parseMetrics(front).work).toBeUndefined();
  const lines = (generated: number) =>
    `${front}vllm:prompt_tokens_total{engine="0"} 100.0\nvllm:generation_tokens_total{engine="0"} ${generated}\n`;
  expect(parseMetrics(lines(7)).work).toBe(107);
  expect(parseMetrics("sglang:generation_tokens_total 3\n").work).toBe(3);
  expect(parseMetrics("llamacpp:n_decode_total 4\n").work).toBe(4);
});

const large: [name: string, text: string, running: number | undefined][] = [
  ["a name without an end", "a".repeat(200_000), undefined],
  ["labels without end", `vllm:num_requests_running${"{".repeat(200_000)}`, undefined],
  ["a series for each of very many processes", "vllm:num_requests_running 1\n".repeat(80_000), 80_000],
];
test.each(large)("%s is read in linear time", { timeout: 10_000 }, (_name, text, running) => {
  expect(parseMetrics(text)).toMatchObject({ running });
});
