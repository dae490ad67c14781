/**
 * Makes metrics.md from the metrics that router and agent declare. `node docs/tools/metrics-page.ts` writes the page.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Registry } from "prom-client";
import { createMetrics as createAgentMetrics } from "../../node-agent/src/metrics/metrics.ts";
import { createMetrics as createRouterMetrics } from "../../router/src/metrics.ts";
import { list } from "./made-parts.ts";

export const metricsFile = join(import.meta.dirname, "../metrics.md");

interface DeclaredMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly meaning: string;
  /** When to look into the metric. Undefined if it only explains others. */
  readonly worry: string | undefined;
}

interface Declared {
  readonly registry: Registry;
  readonly worries: ReadonlyMap<string, string>;
}

const head = `# Metrics

These are the metrics of router and agent for Prometheus. Router and agent declare them, and \`node docs/tools/metrics-page.ts\` makes
this page.

- [How they reach Prometheus](runbook.md#prometheus)
- [Alert rules](../deploy/prometheus/rules.yml), and [what to do when one fires](runbook.md#alerts)

Rules for all of them:

- Labels come from the catalogue, the configuration, nodes with the right certificate, and fixed words. Nothing that a client
  sends adds a series.
- Counters whose labels are known begin with 0, so that \`increase()\` sees the first event.
- What is not measured is absent, never 0.
- Both programs also have the metrics of Node.js, \`process_…\` and \`nodejs_…\`, such as \`nodejs_eventloop_lag_p99_seconds\`.
`;

const ofRouter = `## Router

\`http://127.0.0.1:9464/metrics\`. Each router reports its own requests, links and commits.
`;

const ofAgent = `## Agent

\`http://127.0.0.1:9465/metrics\`, or \`/nodes/<name>/metrics\` of a router. Counts, slots, links and outbox are as of the scrape.
Engines, host and GPUs are measured every 2 s, the machine every 15 s.
`;

/** Returns the metrics of router and agent in the order of their declarations, without those of Node.js. */
export async function declaredMetrics(): Promise<Readonly<Record<"router" | "agent", readonly DeclaredMetric[]>>> {
  return {
    router: await listMetrics(createRouterMetrics(() => 0)),
    agent: await listMetrics(createAgentMetrics()),
  };
}

export async function metricsPage(): Promise<string> {
  const { router, agent } = await declaredMetrics();
  return [head, ofRouter, linesOf(router), ofAgent, linesOf(agent)].join("\n");
}

async function listMetrics({ registry, worries }: Declared): Promise<readonly DeclaredMetric[]> {
  const ours = (await registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith("weiche_"));
  return ours.map(({ name, type, help }) => {
    const { labelNames } = registry.getSingleMetric(name) as unknown as { readonly labelNames: readonly string[] };
    return { name, type: String(type), labels: labelNames, meaning: help, worry: worries.get(name) };
  });
}

/** Returns a list with a line for each metric. */
function linesOf(metrics: readonly DeclaredMetric[]): string {
  return list(
    metrics.map(({ name, type, labels, meaning, worry }) => {
      const kind = [type, ...labels.map((label) => `\`${label}\``)].join(", ");
      const look = worry === undefined ? "" : ` *Look into it when: ${worry}.*`;
      return `**\`${name}\`** (${kind}): ${meaning}.${look}`;
    }),
  );
}

if (import.meta.main) writeFileSync(metricsFile, await metricsPage());
