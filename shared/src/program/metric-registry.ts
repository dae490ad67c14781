/** The registry of a program's metrics, with those of Node.js and of the build, and what declares further ones in it. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { registerBuildInfo } from "./version.ts";

export type MetricRegistry = ReturnType<typeof createMetricRegistry>;

export function createMetricRegistry() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  registerBuildInfo(registry);
  const registers = [registry];
  return {
    registry,
    counter: <L extends string>(name: string, help: string, labelNames: L[] = []) =>
      new Counter<L>({ name, help, labelNames, registers }),
    gauge: <L extends string>(name: string, help: string, labelNames: L[] = []) =>
      new Gauge<L>({ name, help, labelNames, registers }),
    histogram: <L extends string>(name: string, help: string, buckets: number[], labelNames: L[] = []) =>
      new Histogram<L>({ name, help, buckets, labelNames, registers }),
  };
}
