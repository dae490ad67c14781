/**
 * Makes METRICS.md from the metrics that router and agent declare. `node deploy/metrics-page.ts` writes the page.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Registry } from "prom-client";
import { createMetrics as createAgentMetrics } from "../node-agent/src/metrics/metrics.ts";
import { createMetrics as createRouterMetrics } from "../router/src/metrics.ts";

export const metricsFile = join(import.meta.dirname, "METRICS.md");

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

What router and agent tell Prometheus: [how it reaches them](RUNBOOK.md#prometheus), [alert rules](prometheus/rules.yml),
[what to do when one fires](RUNBOOK.md). This page is made from the programs themselves (\`node deploy/metrics-page.ts\`).

Besides these there are those of Node.js (\`process_…\`, \`nodejs_…\`; among them \`nodejs_eventloop_lag_p99_seconds\`). Labels come
from the catalogue, from the configuration, from nodes that said hello with the right certificate, and from fixed words:
nothing that a client sends adds a series. Counters whose labels are known begin with 0, so that \`increase()\` sees the first
event. What is not measured is absent, never 0.
`;

const ofRouter = `## Router

\`http://127.0.0.1:9464/metrics\`. Each of several routers tells of its own requests, links and commits.
`;

const ofAgent = `## Agent

\`http://127.0.0.1:9465/metrics\`, or \`/nodes/<name>/metrics\` of a router. Counts, slots, links and outbox are as they are at the
scrape, measurements of engines, host and GPUs as they were read last, every 2 s, those of the machine every 15 s.
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
  return [head, ofRouter, table(router), ofAgent, table(agent)].join("\n");
}

async function listMetrics({ registry, worries }: Declared): Promise<readonly DeclaredMetric[]> {
  const ours = (await registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith("weiche_"));
  return ours.map(({ name, type, help }) => {
    const { labelNames } = registry.getSingleMetric(name) as unknown as { readonly labelNames: readonly string[] };
    return { name, type: String(type), labels: labelNames, meaning: help, worry: worries.get(name) };
  });
}

function table(metrics: readonly DeclaredMetric[]): string {
  const rows = metrics.map(({ name, type, labels, meaning, worry = "" }) => {
    const quoted = [name, ...labels].map((word) => `\`${word}\``);
    const cells = [quoted[0]!, type, quoted.slice(1).join(", "), meaning, worry];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`.replaceAll("|  |", "| |");
  });
  return ["| name | type | labels | meaning | look into it when |", "|---|---|---|---|---|", ...rows, ""].join("\n");
}

if (import.meta.main) writeFileSync(metricsFile, await metricsPage());
