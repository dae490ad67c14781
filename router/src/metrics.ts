/** The router's metrics. Labels come from the catalogue, from admitted nodes and from fixed words, never from clients. */
import { createMetricRegistry, type MetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import { Gauge } from "prom-client";
import { beginCountersAtZero } from "./counters-at-zero.ts";
import { routerStates } from "./db/live-routers.ts";
import { nodeStates } from "./nodes/node-state.ts";

export type Metrics = ReturnType<typeof createMetrics>;

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const databaseBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Creates the metrics. Each scrape calls `parallelRequests`, which returns how many requests hold a parallel place. */
export function createMetrics(parallelRequests: () => number) {
  const registry = createMetricRegistry();
  const metrics = {
    registry: registry.registry,
    worries: registry.worries,
    scrape: registry.scrape,
    ...createRequestMetrics(registry, parallelRequests),
    ...createNodeMetrics(registry),
    ...createUsageMetrics(registry),
    ...createPeopleMetrics(registry),
    ...createDatabaseMetrics(registry),
    ...createLimitMetrics(registry),
    ...createOwnMetrics(registry),
  };
  beginCountersAtZero(metrics);
  return metrics;
}

function createRequestMetrics({ registry, counter, histogram }: MetricRegistry, parallelRequests: () => number) {
  return {
    requests: counter(
      "weiche_router_requests_total",
      "Requests by outcome: `answered`, `refused`, `client-gone`, `stalled` (the client did not read), `timeout`, `broken`. `model` is a model of the catalogue or `none`",
      ["endpoint", "model", "outcome"],
      "`broken` or `timeout` rises",
    ),
    answers: counter(
      "weiche_router_answers_total",
      "Answers by status and error code",
      ["endpoint", "status", "code"],
      "answers with status 5xx rise",
    ),
    refusals: counter(
      "weiche_router_refusals_total",
      "Refused requests by reason, which is finer than the error code: `rate_limit_minute` and `rate_limit_parallel` of an account, `address_limit`, `path_not_supported`, `invalid_api_key` for an unknown key, `key_revoked` and the like for a known key. `weiche` and the portal show the same reasons for each key",
      ["reason"],
      "`overloaded`, `no_node_available`, `model_unavailable` or `internal` rises",
    ),
    retries: counter(
      "weiche_router_retries_total",
      "Requests that were sent to a second node because the first node was lost, full or failed",
      [],
      "it rises: nodes are lost, full or fail",
    ),
    connectionsRefused: counter(
      "weiche_router_connections_refused_total",
      "Connections to API and portal that were reset on arrival because their address had more than five open for each request that it may send",
      [],
      "it rises, and a proxy is not in `limits.trustedProxies`",
    ),
    failures: counter("weiche_router_failures_total", "Requests that failed by a bug of the router", [], "it rises"),
    durations: histogram(
      "weiche_router_request_seconds",
      "Time from the request line to the end of the answer",
      secondsBuckets,
      ["endpoint"],
    ),
    firstBytes: histogram(
      "weiche_router_first_byte_seconds",
      "Time from the request line to the first byte of the answer",
      secondsBuckets,
      ["endpoint"],
      "its p95 is longer than your users accept",
    ),
    bytesSent: counter("weiche_router_sent_bytes_total", "Bytes of answers sent to clients"),
    parallel: new Gauge({
      name: "weiche_router_parallel_requests",
      help: "Requests of all accounts that hold a parallel place now",
      registers: [registry],
      collect() {
        this.set(parallelRequests());
      },
    }),
  };
}

function createNodeMetrics({ counter, gauge }: MetricRegistry) {
  return {
    nodeLinks: gauge("weiche_router_node_link_up", "1 while the link to a node is up", ["node"], "0"),
    nodeState: gauge(
      "weiche_router_node_state",
      `1 for the state of a node, 0 for the other states: ${nodeStates.map((state) => `\`${state}\``).join(", ")}. The router forgets a gone node after a week, in maintenance after an hour`,
      ["node", "state"],
      "`silent`, `gone` or `not-admitting`",
    ),
    nodeMaintenance: gauge(
      "weiche_router_node_maintenance",
      "1 while a node is in maintenance by its last report or by an operator's command, also while it is gone",
      ["node"],
    ),
    reportAge: gauge(
      "weiche_router_node_report_age_seconds",
      "Age of the last load report of a node. A node sends one each second",
      ["node"],
      "above 3: the router sends no requests to this node",
    ),
    dataConnections: gauge("weiche_router_data_sessions", "Open data connections", ["node"], "0 while the link is up"),
    attemptsFailed: counter(
      "weiche_router_attempts_failed_total",
      "Attempts that failed by a fault of their node or its engine, also if another node then served the request",
      ["node"],
      "it rises",
    ),
    troubles: gauge(
      "weiche_router_slot_trouble",
      "Share of the latest requests for a model that failed in a slot (`failing`) or were far slower there than elsewhere (`slow`), 0 to 1. This router prefers other slots while they can serve. The share decreases while no request comes. Absent without trouble",
      ["node", "slot", "model", "kind"],
      "it stays for minutes",
    ),
    nodesRefused: counter(
      "weiche_router_nodes_refused_total",
      "Refused links and data connections: no certificate or a foreign one (`tls`), another node's name (`name`), too many of one node (`too-many`), too often from one node (`too-often`), too many of clients without a certificate (`crowd`), and the like",
      ["reason"],
      "it rises",
    ),
    hostingIgnored: counter(
      "weiche_router_hosting_ignored_total",
      "Models that a node offers but the catalogue assigns to other nodes. The router sends this node no prompts for them",
      ["node"],
      "it rises",
    ),
  };
}

function createUsageMetrics({ counter, histogram }: MetricRegistry) {
  return {
    usageRecords: counter(
      "weiche_router_usage_records_total",
      "Usage records: `committed`, `repeated` (known already), `refused` (set aside), `voided` (the cost is taken back because the client did not get the answer), `void-lost` (an attempt failed while too many voids waited for the database; its answer may be billed)",
      ["result"],
      "no `committed` while tokens flow, or any `void-lost`",
    ),
    usageSetAside: counter(
      "weiche_router_usage_refused_total",
      "Usage records that were set aside and are billed to nobody: `unreadable`, `malformed`, `too-expensive` (more than a trillion credits), `too-old`, `from-the-future`, `no-grant`, `wrong-grant`, `too-many-tokens`, `database` (the database refuses the values). `weiche usage refused` shows them",
      ["reason"],
      "it rises: a node is damaged or sends false records",
    ),
    credits: counter("weiche_router_credits_total", "Credits of committed usage records", ["model"]),
    creditsVoided: counter(
      "weiche_router_credits_voided_total",
      "Committed credits that were taken back because the client did not get the answer",
      ["model"],
      "it is more than a small share of `weiche_router_credits_total`: nodes or routers die",
    ),
    usageCommits: histogram(
      "weiche_router_usage_commit_seconds",
      "Duration of a commit of usage records",
      secondsBuckets,
      [],
      "seconds: the database is slow",
    ),
  };
}

function createPeopleMetrics({ counter, gauge }: MetricRegistry) {
  return {
    logins: counter(
      "weiche_router_logins_total",
      "Proofs of identity by result: `signed-in`, `wrong`, `code-required`, `code-wrong`, `blocked` (the user), `account-blocked`, `throttled`, `overloaded` (too many passwords waited to be hashed, or one waited too long)",
      ["outcome"],
      "`wrong` rises far above its usual rate",
    ),
    mails: counter(
      "weiche_router_mails_total",
      "Mails by kind (`invitation`, `reset`, `notice`, `sign-in`, `registration`, `welcome`) and result (`sent`, `failed`)",
      ["kind", "result"],
      "`failed` rises",
    ),
    mailsPending: gauge(
      "weiche_router_mails_pending",
      "Mails that the mail server has not accepted yet. If 50 wait, further mails fail. Absent if no mail server is configured",
      [],
      "above 0 for minutes: the mail server is slow or unreachable",
    ),
  };
}

function createDatabaseMetrics({ counter, gauge, histogram }: MetricRegistry) {
  return {
    databaseErrors: counter(
      "weiche_router_database_errors_total",
      "Failed uses of the database. For a job, `what` is the job's name",
      ["what"],
      "it rises",
    ),
    databaseRoundTrip: histogram(
      "weiche_router_database_round_trip_seconds",
      "Duration of the query for changed keys, which runs each 2 s on its own connection",
      databaseBuckets,
      [],
      "its p95 is above 0.1",
    ),
    databaseConnections: gauge(
      "weiche_router_database_connections",
      "Connections to the database. `pool` is `general`, `requests` (keys of requests) or `usage`, `state` is `used` or `idle`",
      ["pool", "state"],
    ),
    databaseConnectionsMax: gauge("weiche_router_database_connections_max", "The most connections that a pool opens", [
      "pool",
    ]),
    databaseWaiting: gauge(
      "weiche_router_database_waiting",
      "Statements that wait for a connection of the pool",
      ["pool"],
      "above 0 for minutes",
    ),
    keyCacheAge: gauge(
      "weiche_router_key_cache_age_seconds",
      "Time since the router last read the changes of keys, which it does each 2 s. Known keys work until 600 s",
      [],
      "above 10: revoked keys still work",
    ),
  };
}

function createLimitMetrics({ counter, gauge, histogram }: MetricRegistry) {
  return {
    limitStoreUp: gauge(
      "weiche_router_limit_store_up",
      "1 while `limits.store` answers within 0.1 s, 0 while this router limits accounts by its own count. Absent without `limits.store`",
      [],
      "0",
    ),
    limitsDecidedAlone: counter(
      "weiche_router_limits_decided_alone_total",
      "Requests whose limits this router decided by its own count because `limits.store` did not answer",
      [],
      "it rises",
    ),
    limitStoreAnswers: histogram(
      "weiche_router_limit_store_seconds",
      "Time that `limits.store` takes to decide on a request",
      [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1],
      [],
      "its p95 is above 0.01",
    ),
  };
}

function createOwnMetrics({ gauge }: MetricRegistry) {
  return {
    routers: gauge(
      "weiche_router_routers",
      `Routers that share the database, including this one, by state: ${routerStates.map((state) => `\`${state}\``).join(", ")}. A router is \`gone\` after 15 s without a heartbeat and is shown for a day, unless another router replaces it`,
      ["state"],
      "`gone` above 0",
    ),
    clockAhead: gauge(
      "weiche_router_clock_ahead_seconds",
      "Seconds by which this machine's clock is certainly ahead of the database's clock. Negative if it is behind",
      [],
      "above 5 or below -5: at 60 a router refuses to start",
    ),
    catalogueReloaded: gauge(
      "weiche_router_catalogue_last_reload_successful",
      "1 if the last reload of the catalogue succeeded, 0 if it failed and the previous catalogue is in use",
      [],
      "0",
    ),
    catalogueReadAt: gauge(
      "weiche_router_catalogue_last_reload_success_timestamp_seconds",
      "Time at which the catalogue in use was read, in seconds since 1970",
    ),
    catalogues: gauge(
      "weiche_router_catalogues",
      "Different catalogues of the routers that serve, as this router sees them in the database. 1 if all have the same",
      [],
      "above 1: requests cost different credits at each router",
    ),
    certificateExpiry: gauge(
      "weiche_router_certificate_expiry_timestamp_seconds",
      "Time at which a certificate in use expires, in seconds since 1970. If a file has several, the earliest counts. `use` is `api` (also the portal), `nodes` or `ops`, `file` is `cert` or `ca`",
      ["use", "file"],
      "less than 21 days ahead",
    ),
    jobRuns: gauge(
      "weiche_router_job_last_run_timestamp_seconds",
      "Time at which a job last ended without an error, in seconds since 1970: `heartbeats` to the nodes (each second), `node-wishes` (2 s), `refusals` (5 s), `routers` (5 s), `limit-peaks` and `notice-mails` (30 s), `credits` (the evaluation, `credits.evaluateSeconds`), `usage-days` and `identity-sweep` (1 h), `audit-retention` (6 h). Only one of several routers evaluates credits and removes old audit entries. The others check whether it still does",
      ["name"],
      "several periods old. For `credits`: limits apply too late",
    ),
  };
}
