/**
 * The agent's metrics. Labels come from the configuration and from fixed words, so that a client cannot add a series.
 */
import { createMetricRegistry, type MetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import { GapHistogram } from "./gap-histogram.ts";
import { createHostMetrics } from "./host-metrics.ts";
import { createMachineMetrics } from "./machine-metrics.ts";
import { createSlotMetrics } from "./slot-metrics.ts";

export type Metrics = ReturnType<typeof createMetrics>;

const tokenBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export function createMetrics() {
  const registry = createMetricRegistry();
  return {
    registry: registry.registry,
    worries: registry.worries,
    scrape: registry.scrape,
    ...createRequestMetrics(registry),
    ...createSlotMetrics(registry),
    ...createNodeMetrics(registry),
    ...createHostMetrics(registry),
    machine: createMachineMetrics(registry),
  };
}

function createRequestMetrics(metrics: MetricRegistry) {
  const { registry, counter, histogram, worryAbout } = metrics;
  const interToken = "weiche_agent_inter_token_seconds";
  worryAbout(interToken, "its p99 is far above the model's usual gap: the engine is overloaded");
  return {
    requests: counter(
      "weiche_agent_requests_total",
      "Requests by their end in the usage record: `finished`, `client-ended`, `limit-ended`, `broken`. `refused`: requests without a record. Model `other`: models that this node does not serve",
      ["model", "outcome"],
      "`broken` rises",
    ),
    firstToken: histogram(
      "weiche_agent_time_to_first_token_seconds",
      "From admission to the engine's first chunk",
      tokenBuckets,
      ["model"],
      "its p95 is seconds without a switch: prompts are long, or the engine is overloaded",
    ),
    interToken: new GapHistogram(
      interToken,
      "Time between two output chunks of an answer, with most engines one token each. Counted when the answer has ended",
      registry,
    ),
    tokens: counter("weiche_agent_tokens_total", "Tokens as billed: `prompt`, `completion`", ["model", "kind"]),
  };
}

function createNodeMetrics({ counter, gauge }: MetricRegistry) {
  return {
    outboxRecords: gauge("weiche_agent_outbox_records", "Usage records that no router has committed yet"),
    outboxOldest: gauge(
      "weiche_agent_outbox_oldest_seconds",
      "Age of the oldest usage record that no router has committed yet. 0 if there is none",
      [],
      "it stays above some minutes: no router commits",
    ),
    outboxAdmitting: gauge(
      "weiche_agent_outbox_admitting",
      "0 while no request is admitted because the outbox's disk is full",
      [],
      "0",
    ),
    outboxFree: gauge(
      "weiche_agent_outbox_disk_free_bytes",
      "Bytes that may still be written to the outbox's disk, read twice a second. Below 1 MiB no request is admitted. Absent if the disk does not report it",
      [],
      "below some hundred megabytes",
    ),
    unreadBytes: gauge(
      "weiche_agent_unread_answer_bytes",
      "Bytes of answers that engines have generated and clients have not read yet. At most 256 MiB. An account may hold a third of the remaining space",
      [],
      "above 128 MiB for minutes: many clients read slowly, and engines may soon wait for them",
    ),
    answersVoided: counter(
      "weiche_agent_answers_voided_total",
      "Finished answers that cost nothing, because their router died before it had delivered them",
      [],
      "it rises: a router dies",
    ),
    usageDelivered: counter("weiche_agent_usage_delivered_total", "Usage records that a router has committed"),
    routerLink: gauge("weiche_agent_router_link_up", "1 while the link to a router is up", ["router"], "0"),
    dataConnections: gauge("weiche_agent_data_sessions", "Open data connections", ["router"], "0 while the link is up"),
    rulesBroken: counter(
      "weiche_agent_data_rules_broken_total",
      "Data connections that were closed because their router broke a rule of the protocol (shared/src/frames/README.md)",
      ["rule"],
      "it rises: router or agent has a bug",
    ),
    maintenance: gauge(
      "weiche_agent_maintenance",
      "1 while a router or the operator has the node in maintenance. It then admits no requests",
      [],
      "1 for longer than intended",
    ),
    certificateExpiry: gauge(
      "weiche_agent_certificate_expiry_timestamp_seconds",
      "Expiry time of each certificate in use, in seconds since 1970. For a file with several, the first one that expires. `use`: `links` to the routers, `ops` of the operations listener. `file`: `cert`, `ca`",
      ["use", "file"],
      "less than 21 days in the future",
    ),
    jobRuns: gauge(
      "weiche_agent_job_last_run_timestamp_seconds",
      "Time when periodic work last ended without an error, in seconds since 1970: `measurements` of host, GPUs and engines (every 2 s), `machine` (every 15 s), `inventory` of the hardware (once, after a failure every 10 min, and this job runs as often), `foreign-processes` on the GPUs (every 30 s)",
      ["name"],
      "older than a few of its periods",
    ),
  };
}
