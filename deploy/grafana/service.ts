/** The dashboard *Service*: users' requests and answers, and the state of routers and database. */
import { dashboard } from "./dashboard.ts";
import { lines, number } from "./panels.ts";
import { database, routers } from "./routers.ts";

const router = 'instance=~"$router"';
const ofModel = `${router}, model=~"$model"`;

/** Returns the expression for a quantile of a histogram, grouped by the labels `by`. */
function quantile(q: number, histogram: string, matchers: string, by: string): string {
  return `histogram_quantile(${q}, sum by (${by}, le) (rate(${histogram}_bucket{${matchers}}[$__rate_interval])))`;
}

const now = [
  number(
    {
      title: "Requests",
      description: "Ended requests of every outcome, over the last five minutes.",
      unit: "reqps",
      empty: "no router",
    },
    `sum(instance:weiche_router_requests:rate5m{${router}})`,
  ),
  number(
    {
      title: "Refused by the service",
      description:
        "Share of requests that the service refused (no place, no node, no engine, a switch), at the router with the largest share. Alert above 5 %.",
      unit: "percentunit",
      empty: "no requests",
    },
    `max(instance:weiche_router_refusals_per_requests:ratio_rate5m{${router}} >= 0)`,
  ),
  number(
    {
      title: "Broken answers",
      description: "Share of answers that broke off, over ten minutes. Alert above 1 %.",
      unit: "percentunit",
      empty: "no requests",
    },
    `max(instance:weiche_router_breaks_per_requests:ratio_rate10m{${router}} >= 0)`,
  ),
  number(
    {
      title: "First byte, 95 %",
      description: "95 % of chats and completions had their first byte within this time. Alert above 30 s.",
      unit: "s",
      empty: "no chats",
    },
    `max(instance:weiche_router_first_byte_seconds:p95_rate10m{${router}} >= 0)`,
  ),
  number(
    {
      title: "Routers that answer",
      description: "Routers that Prometheus can reach.",
      unit: "none",
      empty: "no router",
    },
    `sum(up{job="weiche-router", ${router}})`,
  ),
  number(
    {
      title: "Next certificate expires",
      description: "When the first certificate of routers and nodes expires. Alert 21 days before.",
      unit: "dateTimeFromNow",
      empty: "no TLS",
    },
    "min(instance_use_file:weiche_certificate_expiry_timestamp_seconds:min) * 1000",
  ),
];

const requests = [
  lines(
    {
      title: "Requests by outcome",
      description:
        "Ended requests by outcome. `broken` and `timeout`: the service failed. `stalled`: the client did not read.",
      unit: "reqps",
      empty: "no requests",
      stacked: true,
    },
    {
      expr: `sum by (outcome) (rate(weiche_router_requests_total{${ofModel}}[$__rate_interval]))`,
      legend: "{{outcome}}",
    },
  ),
  lines(
    {
      title: "Requests by model",
      description: "`none`: the request had no catalogue model, or ended before its body was read.",
      unit: "reqps",
      empty: "no requests",
      stacked: true,
    },
    { expr: `sum by (model) (rate(weiche_router_requests_total{${ofModel}}[$__rate_interval]))`, legend: "{{model}}" },
  ),
  lines(
    {
      title: "Refusals by reason",
      description: "Only reasons that occurred. The portal's help page has advice for each.",
      unit: "reqps",
      empty: "nothing was refused",
      stacked: true,
    },
    {
      expr: `sum by (reason) (rate(weiche_router_refusals_total{${router}}[$__rate_interval])) > 0`,
      legend: "{{reason}}",
    },
  ),
  lines(
    {
      title: "Errors by status and code",
      description: "Answers to clients with a status of 500 or above.",
      unit: "reqps",
      empty: "no such answer",
      stacked: true,
    },
    {
      expr: `sum by (status, code) (rate(weiche_router_answers_total{${router}, status=~"5.."}[$__rate_interval])) > 0`,
      legend: "{{status}} {{code}}",
    },
  ),
  lines(
    {
      title: "Second attempts and refused connections",
      description:
        "Requests that were sent to a second node, and connections that were reset because their address opened too many.",
      unit: "cps",
      empty: "no router",
    },
    { expr: `sum(rate(weiche_router_retries_total{${router}}[$__rate_interval]))`, legend: "second attempts" },
    {
      expr: `sum(rate(weiche_router_connections_refused_total{${router}}[$__rate_interval]))`,
      legend: "refused connections",
    },
  ),
  lines(
    {
      title: "Bugs",
      description: "Requests of the last hour that failed with an unexpected error. The router's log has the stack.",
      unit: "none",
      empty: "no router",
    },
    { expr: `sum by (instance) (increase(weiche_router_failures_total{${router}}[1h]))`, legend: "{{instance}}" },
  ),
];

const times = [
  lines(
    {
      title: "First byte",
      description:
        "From the request line to the first byte of the answer. Without streaming, the first byte comes at the answer's end.",
      unit: "s",
      empty: "no answers",
    },
    ...[0.5, 0.95, 0.99].map((q) => ({
      expr: quantile(q, "weiche_router_first_byte_seconds", router, "endpoint"),
      legend: `{{endpoint}} ${q * 100} %`,
    })),
  ),
  lines(
    {
      title: "Whole answer, 95 %",
      description: "From the request line to the end of the answer.",
      unit: "s",
      empty: "no answers",
    },
    { expr: quantile(0.95, "weiche_router_request_seconds", router, "endpoint"), legend: "{{endpoint}}" },
  ),
  lines(
    {
      title: "Held for a switch or a place, 95 %",
      description: "Waiting time of admitted requests at their slot.",
      unit: "s",
      empty: "no requests",
    },
    { expr: quantile(0.95, "weiche_agent_wait_seconds", 'model=~"$model"', "model"), legend: "{{model}}" },
  ),
  lines(
    {
      title: "Time to first token, 95 %",
      description: "From admission to the engine's first chunk. Includes prompt processing and the engine's own queue.",
      unit: "s",
      empty: "no answers",
    },
    {
      expr: quantile(0.95, "weiche_agent_time_to_first_token_seconds", 'model=~"$model"', "model"),
      legend: "{{model}}",
    },
  ),
  lines(
    {
      title: "Between two tokens, 99 %",
      description: "Time between two chunks of an answer. Most engines send one token per chunk.",
      unit: "s",
      empty: "no answers",
    },
    { expr: quantile(0.99, "weiche_agent_inter_token_seconds", 'model=~"$model"', "model"), legend: "{{model}}" },
  ),
];

const streams = [
  lines(
    {
      title: "Tokens",
      description: "Billed tokens of prompts and answers.",
      unit: "suffix: tok/s",
      empty: "no tokens",
      stacked: true,
    },
    {
      expr: 'sum by (model, kind) (rate(weiche_agent_tokens_total{model=~"$model"}[$__rate_interval]))',
      legend: "{{model}} {{kind}}",
    },
  ),
  lines(
    {
      title: "Requests in parallel",
      description: "Requests of all accounts that count as parallel, by router.",
      unit: "none",
      empty: "no router",
      stacked: true,
    },
    { expr: `weiche_router_parallel_requests{${router}}`, legend: "{{instance}}" },
  ),
  lines(
    {
      title: "Sent to clients",
      description: "Bytes of answers, by router.",
      unit: "Bps",
      empty: "no router",
      stacked: true,
    },
    { expr: `rate(weiche_router_sent_bytes_total{${router}}[$__rate_interval])`, legend: "{{instance}}" },
  ),
];

export const service = dashboard({
  uid: "weiche-service",
  title: "Service",
  description: "Requests and answers of users, and the state of routers and database.",
  variables: ["router", "model"],
  rows: { Now: now, Requests: requests, Times: times, Streams: streams, Routers: routers, Database: database },
});
