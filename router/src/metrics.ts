/** The router's metrics. Labels come from the catalogue, from nodes that have said hello, and from fixed words. */
import { createMetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import { Gauge } from "prom-client";

export type Metrics = ReturnType<typeof createMetrics>;

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** `parallelRequests`: how many requests hold a parallel place, read at each scrape. */
export function createMetrics(parallelRequests: () => number) {
  const { registry, counter, gauge, histogram: withBuckets } = createMetricRegistry();
  const histogram = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    withBuckets(name, help, secondsBuckets, labelNames);
  return {
    registry,
    requests: counter("weiche_router_requests_total", "Requests by how they ended", ["endpoint", "model", "outcome"]),
    answers: counter("weiche_router_answers_total", "Answers by status and error code", ["endpoint", "status", "code"]),
    retries: counter("weiche_router_retries_total", "Requests that were tried on a second node"),
    connectionsRefused: counter(
      "weiche_router_connections_refused_total",
      "Connections beyond what an address may open",
    ),
    failures: counter("weiche_router_failures_total", "Requests that met a bug of ours"),
    durations: histogram("weiche_router_request_seconds", "From the request line to the end of the answer", [
      "endpoint",
    ]),
    firstBytes: histogram("weiche_router_first_byte_seconds", "From the request line to the first byte of the answer", [
      "endpoint",
    ]),
    bytesSent: counter("weiche_router_sent_bytes_total", "Bytes of answers"),
    parallel: new Gauge({
      name: "weiche_router_parallel_requests",
      help: "Requests that hold a parallel place",
      registers: [registry],
      collect() {
        this.set(parallelRequests());
      },
    }),
    nodeLinks: gauge("weiche_router_node_link_up", "1 while the link to a node is up", ["node"]),
    dataSessions: gauge("weiche_router_data_sessions", "Open data sessions", ["node"]),
    nodesRefused: counter("weiche_router_nodes_refused_total", "Links and data sessions that were refused", ["reason"]),
    hostingIgnored: counter(
      "weiche_router_hosting_ignored_total",
      "Models that a node says it hosts and that the catalogue gives to others",
      ["node"],
    ),
    usageRecords: counter("weiche_router_usage_records_total", "Usage records by what became of them", ["result"]),
    usageSetAside: counter("weiche_router_usage_refused_total", "Usage records that were set aside, by reason", [
      "reason",
    ]),
    usageCommits: histogram("weiche_router_usage_commit_seconds", "Duration of a commit of usage records"),
    logins: counter("weiche_router_logins_total", "Proofs of identity by how they ended", ["outcome"]),
    mails: counter("weiche_router_mails_total", "Mails by kind and whether the server took them", ["kind", "result"]),
    jobRuns: gauge(
      "weiche_router_job_last_run_timestamp_seconds",
      "When the job last ended without an error, here or on the router that holds its lease",
      ["job"],
    ),
    databaseErrors: counter("weiche_router_database_errors_total", "Failed uses of the database", ["what"]),
  };
}
