/**
 * The registry of a program's metrics, including metrics of Node.js and of the build, and functions that declare more.
 * The page for operators (docs/metrics.md) is generated from these declarations.
 */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { registerBuildInfo } from "./version.ts";

export type MetricRegistry = ReturnType<typeof createMetricRegistry>;

/**
 * Each function declares a metric by its name, its meaning (the help text, and a cell of the page), its labels, and
 * `worry`: when an operator should look into it. A metric without `worry` only explains others.
 */
export function createMetricRegistry() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  registerBuildInfo(registry);
  const registers = [registry];
  const worries = new Map<string, string>();
  const worryAbout = (name: string, worry?: string) => worry !== undefined && worries.set(name, worry);
  let publish = (): void | Promise<void> => {};
  return {
    registry,
    /** Declarations by the metric's name. */
    worries: worries as ReadonlyMap<string, string>,
    /** Answers a scrape by Prometheus. */
    scrape: {
      contentType: registry.contentType,
      /** Registers a callback that updates the gauges before each answer. */
      onScrape: (callback: () => void | Promise<void>) => void (publish = callback),
      async metrics() {
        await publish();
        return registry.metrics();
      },
    },
    worryAbout,
    counter: <L extends string>(name: string, help: string, labelNames: L[] = [], worry?: string) => {
      worryAbout(name, worry);
      return new Counter<L>({ name, help, labelNames, registers });
    },
    gauge: <L extends string>(name: string, help: string, labelNames: L[] = [], worry?: string) => {
      worryAbout(name, worry);
      return new Gauge<L>({ name, help, labelNames, registers });
    },
    histogram: <L extends string>(
      name: string,
      help: string,
      buckets: number[],
      labelNames: L[] = [],
      worry?: string,
    ) => {
      worryAbout(name, worry);
      return new Histogram<L>({ name, help, buckets, labelNames, registers });
    },
  };
}

/** Creates the series of all label combinations with 0, so that `rate()` and `increase()` see the first event. */
export function beginAtZero<L extends string>(counter: Counter<L>, values: Record<L, Iterable<string>>): void {
  let all: Partial<Record<L, string>>[] = [{}];
  for (const [label, ofLabel] of Object.entries<Iterable<string>>(values))
    all = all.flatMap((labels) => Array.from(ofLabel, (value) => ({ ...labels, [label]: value })));
  for (const labels of all) counter.inc(labels as Record<L, string>, 0);
}
