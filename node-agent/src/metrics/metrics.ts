/** The agent's metrics. Labels come from the configuration and from fixed words: a client cannot add a series. */
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
  worryAbout(interToken, "its p99 is far above what the model gives alone: the engine is overloaded");
  return {
    requests: counter(
      "weiche_agent_requests_total",
      "Requests by how they ended, as their usage record says: `finished`, `client-ended`, `limit-ended`, `broken`; `refused`: without a record. Model `other`: none of this node's",
      ["model", "outcome"],
      "`broken` rises",
    ),
    firstToken: histogram(
      "weiche_agent_time_to_first_token_seconds",
      "From admission to the engine's first chunk",
      tokenBuckets,
      ["model"],
      "its p95 is seconds while nothing switches: prompts are long, or the engine is overloaded",
    ),
    interToken: new GapHistogram(
      interToken,
      "Time between two output chunks of an answer, a token each with most engines; counted when the answer has ended",
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
      "Age of the oldest usage record that no router has committed yet; 0: there is none",
      [],
      "over some minutes: no router commits",
    ),
    outboxAdmitting: gauge(
      "weiche_agent_outbox_admitting",
      "0 while the outbox's disk is full and therefore nothing is admitted",
      [],
      "0",
    ),
    outboxFree: gauge(
      "weiche_agent_outbox_disk_free_bytes",
      "What may still be written to the outbox's disk, looked at twice a second. Below 1 MiB nothing is admitted. Absent: the disk does not say",
      [],
      "below some hundred megabytes",
    ),
    unreadBytes: gauge(
      "weiche_agent_unread_answer_bytes",
      "Bytes of answers that engines have made and clients have not read yet. At most 256 MiB; an account may hold a third of what is left of them",
      [],
      "over 128 MiB for minutes: many clients read slowly, and engines may soon wait for them",
    ),
    answersVoided: counter(
      "weiche_agent_answers_voided_total",
      "Finished answers that cost nothing, because their router died before it had handed them over",
      [],
      "it rises: a router dies",
    ),
    usageDelivered: counter("weiche_agent_usage_delivered_total", "Usage records that a router has committed"),
    routerLink: gauge("weiche_agent_router_link_up", "1 while the link to a router is up", ["router"], "0"),
    dataSessions: gauge("weiche_agent_data_sessions", "Open data sessions", ["router"], "0 while the link is up"),
    rulesBroken: counter(
      "weiche_agent_data_rules_broken_total",
      "Data connections that were closed because their router broke a rule of the wire (shared/src/frames/README.md)",
      ["rule"],
      "it rises: router or agent has a bug",
    ),
    maintenance: gauge(
      "weiche_agent_maintenance",
      "1 while the node is in maintenance, whichever side wished it: it takes nothing new",
      [],
      "1 for longer than you meant it",
    ),
    certificateExpiry: gauge(
      "weiche_agent_certificate_expiry_timestamp_seconds",
      "When a certificate in use expires, in seconds since 1970; of several in a file the first. `use`: `links` to the routers, `ops` of the operations listener; `file`: `cert`, `ca`",
      ["use", "file"],
      "less than 21 days ahead",
    ),
    jobRuns: gauge(
      "weiche_agent_job_last_run_timestamp_seconds",
      "When periodic work last ended without an error, in seconds since 1970: `measurements` of host, GPUs and engines (2 s), `machine` (15 s), `inventory` of what the host is made of (once; after a failure again each 10 min, which is also how often this job is seen to run), `foreign-processes` on the GPUs (30 s)",
      ["name"],
      "longer ago than some of its periods",
    ),
  };
}
