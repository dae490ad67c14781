/** The router's metrics. Labels come from the catalogue, from nodes that have said hello, and from fixed words. */
import { createMetricRegistry, type MetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import { Gauge } from "prom-client";
import { beginCountersAtZero } from "./counters-at-zero.ts";
import { routerStates } from "./db/live-routers.ts";
import { nodeStates } from "./nodes/node-state.ts";

export type Metrics = ReturnType<typeof createMetrics>;

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const databaseBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** `parallelRequests`: how many requests hold a parallel place, read at each scrape. */
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
      "Requests by how they ended: `answered`, `refused`, `client-gone`, `stalled` (a client that did not read), `timeout`, `broken`. `model` is one of the catalogue, or `none`",
      ["endpoint", "model", "outcome"],
      "`broken` or `timeout` rises",
    ),
    answers: counter(
      "weiche_router_answers_total",
      "Answers by status and error code",
      ["endpoint", "status", "code"],
      "those with 5xx rise",
    ),
    refusals: counter(
      "weiche_router_refusals_total",
      "Refused requests by reason, finer than the code: `rate_limit_minute` and `rate_limit_parallel` of an account, `address_limit`, `invalid_api_key` for a key that is unknown, `key_revoked` and the like for one that is known, `path_not_supported`, and those that `weiche` and the portal show for each key",
      ["reason"],
      "`overloaded`, `no_node_available`, `model_unavailable` or `internal` rises",
    ),
    retries: counter(
      "weiche_router_retries_total",
      "Requests that were tried on a second node, because the first was lost, full, or failed",
      [],
      "it rises: nodes are lost, full, or fail",
    ),
    connectionsRefused: counter(
      "weiche_router_connections_refused_total",
      "Connections to API and portal that were reset on arrival: one address opened more than five for each request that it may send",
      [],
      "it rises, and a proxy is not in `limits.trustedProxies`",
    ),
    failures: counter("weiche_router_failures_total", "Requests that met a bug of ours", [], "it rises"),
    durations: histogram(
      "weiche_router_request_seconds",
      "From the request line to the end of the answer",
      secondsBuckets,
      ["endpoint"],
    ),
    firstBytes: histogram(
      "weiche_router_first_byte_seconds",
      "From the request line to the first byte of the answer",
      secondsBuckets,
      ["endpoint"],
      "its p95 is near what your users bear",
    ),
    bytesSent: counter("weiche_router_sent_bytes_total", "Bytes of answers"),
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
      `1 for the state that a node is in, 0 for the others: ${nodeStates.map((state) => `\`${state}\``).join(", ")}. A node that is gone is forgotten after a week, after an hour if it is in maintenance`,
      ["node", "state"],
      "`silent`, `gone` or `not-admitting`",
    ),
    nodeMaintenance: gauge(
      "weiche_router_node_maintenance",
      "1 while a node is in maintenance, also while it is away: as it said last, or as operators wish",
      ["node"],
    ),
    reportAge: gauge(
      "weiche_router_node_report_age_seconds",
      "Age of the last load report of a node; one comes each second",
      ["node"],
      "above 3: nothing goes to this node any more",
    ),
    dataSessions: gauge("weiche_router_data_sessions", "Open data sessions", ["node"], "0 while the link is up"),
    attemptsFailed: counter(
      "weiche_router_attempts_failed_total",
      "Attempts that failed by their node or its engine, whether another node served their requests or not",
      ["node"],
      "it rises",
    ),
    troubles: gauge(
      "weiche_router_slot_trouble",
      "Share of the latest requests for a model that failed in a slot (`failing`) or were far slower there than elsewhere (`slow`), 0 to 1. This router asks others first while they can serve. The share fades while no request comes. Absent: no trouble",
      ["node", "slot", "model", "kind"],
      "it is there for minutes",
    ),
    nodesRefused: counter(
      "weiche_router_nodes_refused_total",
      "Links and data sessions that were refused: no or a foreign certificate (`tls`), another node's name (`name`), too many of a node (`too-many`) or of strangers (`crowd`), and the like",
      ["reason"],
      "it rises",
    ),
    hostingIgnored: counter(
      "weiche_router_hosting_ignored_total",
      "Models that a node says it hosts and that the catalogue gives to other nodes: no prompt of them goes there",
      ["node"],
      "it rises",
    ),
  };
}

function createUsageMetrics({ counter, histogram }: MetricRegistry) {
  return {
    usageRecords: counter(
      "weiche_router_usage_records_total",
      "Usage records: `committed`, `repeated` (known already), `refused` (set aside), `voided`: attempts whose cost was taken back, since their clients did not get the answers; `void-lost`: attempts that failed while too many voids waited for the database, whose answers may be billed",
      ["result"],
      "no `committed` while tokens flow, or any `void-lost`",
    ),
    usageSetAside: counter(
      "weiche_router_usage_refused_total",
      "Usage records that were set aside and are billed to nobody: `unreadable`, `malformed`, `too-expensive` (beyond a trillion credits), `too-old`, `from-the-future`, `no-grant`, `wrong-grant`, `too-many-tokens`, `database` (it refuses the values). `weiche usage refused` shows them",
      ["reason"],
      "it rises: a node is damaged or lies",
    ),
    credits: counter("weiche_router_credits_total", "Credits of committed usage records", ["model"]),
    creditsVoided: counter(
      "weiche_router_credits_voided_total",
      "Credits of these that were taken back, since the clients did not get the answers",
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
      "Proofs of identity: `signed-in`, `wrong`, `code-required`, `code-wrong`, `blocked` (the user), `account-blocked`, `throttled`, `overloaded` (too many people waited for a hash, or one for too long)",
      ["outcome"],
      "`wrong` rises far above what people do",
    ),
    mails: counter(
      "weiche_router_mails_total",
      "Mails, `invitation` or `reset`: `sent` or `failed`",
      ["kind", "result"],
      "`failed` rises",
    ),
    mailsPending: gauge(
      "weiche_router_mails_pending",
      "Mails that the mail server has not taken yet; beyond 50 they fail. Absent: no mail is configured",
      [],
      "above 0 for minutes: the mail server is slow or away",
    ),
  };
}

function createDatabaseMetrics({ counter, gauge, histogram }: MetricRegistry) {
  return {
    databaseErrors: counter(
      "weiche_router_database_errors_total",
      "Failed uses of the database, those of jobs by the job's name",
      ["what"],
      "it rises",
    ),
    databaseRoundTrip: histogram(
      "weiche_router_database_round_trip_seconds",
      "How long the database takes to say what changed of keys, which it is asked each 2 s on a connection of its own",
      databaseBuckets,
      [],
      "its p95 is above 0.1",
    ),
    databaseConnections: gauge(
      "weiche_router_database_connections",
      "Connections to the database: `pool` `general`, `requests` (keys of requests) or `usage`; `state` `used` or `idle`",
      ["pool", "state"],
    ),
    databaseConnectionsMax: gauge(
      "weiche_router_database_connections_max",
      "How many connections a pool opens at most",
      ["pool"],
    ),
    databaseWaiting: gauge(
      "weiche_router_database_waiting",
      "Statements that wait for a connection of the pool",
      ["pool"],
      "above 0 for some minutes",
    ),
    keyCacheAge: gauge(
      "weiche_router_key_cache_age_seconds",
      "How long ago the changes of keys were read; it happens each 2 s. Until 600 s known keys go on",
      [],
      "above 10: revoked keys still work",
    ),
  };
}

function createLimitMetrics({ counter, gauge, histogram }: MetricRegistry) {
  return {
    limitStoreUp: gauge(
      "weiche_router_limit_store_up",
      "1 while `limits.store` answers, within 0.1 s; 0 while this router limits accounts by its own count. Absent: each router counts its own",
      [],
      "0",
    ),
    limitsDecidedAlone: counter(
      "weiche_router_limits_decided_alone_total",
      "Requests whose limits were decided by the own count of this router, since `limits.store` did not answer",
      [],
      "it rises",
    ),
    limitStoreAnswers: histogram(
      "weiche_router_limit_store_seconds",
      "How long `limits.store` takes to decide on a request",
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
      `Routers that share the database, this one included, by state: ${routerStates.map((state) => `\`${state}\``).join(", ")} (no heartbeat for 15 s, and nothing in its place; told for a day)`,
      ["state"],
      "`gone` above 0",
    ),
    clockAhead: gauge(
      "weiche_router_clock_ahead_seconds",
      "By how much the clock of this router's machine is ahead of the database's, as far as it is certain; negative: behind",
      [],
      "more than some seconds either way; at 60 a router refuses to start",
    ),
    catalogueReloaded: gauge(
      "weiche_router_catalogue_last_reload_successful",
      "1: the catalogue is the one that was read last; 0: that was wrong, and the one before stays",
      [],
      "0",
    ),
    catalogueReadAt: gauge(
      "weiche_router_catalogue_last_reload_success_timestamp_seconds",
      "When the catalogue in use was read, in seconds since 1970",
    ),
    certificateExpiry: gauge(
      "weiche_router_certificate_expiry_timestamp_seconds",
      "When a certificate in use expires, in seconds since 1970; of several in a file the first. `use`: `api` and portal, `nodes`, `ops`; `file`: `cert`, `ca`",
      ["use", "file"],
      "less than 21 days ahead",
    ),
    jobRuns: gauge(
      "weiche_router_job_last_run_timestamp_seconds",
      "When periodic work last ended without an error, in seconds since 1970: `heartbeats` to the nodes (each second), `node-wishes` (2 s), `refusals` (5 s), `routers` (5 s), `credits` (the evaluation, `credits.evaluateSeconds`), `usage-days` and `identity-sweep` (1 h), `audit-retention` (6 h). Of several routers one evaluates credits and removes old audit entries; the others look whether it still does",
      ["name"],
      "longer ago than some of its periods; `credits`: limits hold too late",
    ),
  };
}
