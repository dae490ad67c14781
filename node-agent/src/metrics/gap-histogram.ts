/**
 * A histogram of the gaps between output chunks, by model. Requests are added when they end, because prom-client's
 * histogram would look up labels and allocate objects for every chunk.
 */
import type { Metric, Registry } from "prom-client";
import type { ModelId } from "@weiche/shared/ids.ts";
import { gapBoundsMs, type ChunkGaps } from "../answer/chunk-gaps.ts";

interface Sums {
  readonly buckets: number[];
  count: number;
  sumMs: number;
}

export class GapHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = "histogram";
  readonly aggregator = "sum";
  readonly labelNames = ["model"];
  readonly #models = new Map<ModelId, Sums>();

  constructor(name: string, help: string, registry: Registry) {
    this.name = name;
    this.help = help;
    registry.registerMetric(this as unknown as Metric);
  }

  merge(model: ModelId, gaps: ChunkGaps): void {
    if (gaps.count === 0) return;
    const none = () => ({ buckets: Array<number>(gapBoundsMs.length + 1).fill(0), count: 0, sumMs: 0 });
    const sums = this.#models.getOrInsertComputed(model, none);
    for (const [bucket, count] of gaps.buckets.entries()) sums.buckets[bucket]! += count;
    sums.count += gaps.count;
    sums.sumMs += gaps.sumMs;
  }

  /** Called by the registry at each scrape. */
  get() {
    const { name, help, type, aggregator } = this;
    const values = [...this.#models].flatMap((of) => this.#values(...of));
    return Promise.resolve({ name, help, type, aggregator, values });
  }

  #values(model: ModelId, { buckets, count, sumMs }: Sums) {
    let below = 0;
    const bounds = gapBoundsMs.map((boundMs, bucket) => ({
      labels: { le: boundMs / 1000, model },
      value: (below += buckets[bucket]!),
      metricName: `${this.name}_bucket`,
    }));
    return [
      ...bounds,
      { labels: { le: "+Inf", model }, value: count, metricName: `${this.name}_bucket` },
      { labels: { model }, value: sumMs / 1000, metricName: `${this.name}_sum` },
      { labels: { model }, value: count, metricName: `${this.name}_count` },
    ];
  }
}
