/** The dashboard *Money*: from usage at the nodes to credits in the ledger. It shows models, but no accounts. */
import { dashboard } from "./dashboard.ts";
import { lines, number } from "./panels.ts";

const router = 'instance=~"$router"';
const node = 'node=~"$node"';
const model = 'model=~"$model"';

const now = [
  number(
    {
      title: "Credits in the last hour",
      description: "Credits of usage committed in the last hour, without voided usage.",
      unit: "short",
      empty: "no router",
      width: 6,
    },
    `sum(model:weiche_router_credits:increase1h{${model}})`,
  ),
  number(
    {
      title: "Not committed",
      description: "Usage records on the nodes' disks that no router has committed yet.",
      unit: "none",
      empty: "no node",
      width: 6,
    },
    `sum(weiche_agent_outbox_records{${node}})`,
  ),
  number(
    {
      title: "Oldest of these",
      description: "Age of the oldest uncommitted usage record. Alert above 5 min.",
      unit: "s",
      empty: "no node",
      width: 6,
    },
    `max(weiche_agent_outbox_oldest_seconds{${node}})`,
  ),
  number(
    {
      title: "Since the last evaluation",
      description: "Longest time since a router compared usage with quotas. Alert above 10 min.",
      unit: "s",
      empty: "no router",
      width: 6,
    },
    `max(instance:weiche_router_evaluation_age_seconds:max{${router}})`,
  ),
];

const credits = [
  lines(
    {
      title: "Credits per hour by model",
      description: "Credits of usage committed within the previous hour, without voided usage.",
      unit: "short",
      empty: "no router",
      stacked: true,
      width: 12,
    },
    { expr: `model:weiche_router_credits:increase1h{${model}}`, legend: "{{model}}" },
  ),
  lines(
    {
      title: "Share of each model",
      description: "Each model's share of the credits of the last hour.",
      unit: "percentunit",
      empty: "no credits in the last hour",
      stacked: true,
      max: 1,
      width: 12,
    },
    {
      expr: `model:weiche_router_credits:increase1h{${model}} / on () group_left () (sum(model:weiche_router_credits:increase1h{${model}}) > 0)`,
      legend: "{{model}}",
    },
  ),
  lines(
    {
      title: "Tokens per hour",
      description: "Billed tokens of prompts and answers, by model.",
      unit: "short",
      empty: "no node",
      stacked: true,
      width: 12,
    },
    {
      expr: `3600 * sum by (model, kind) (rate(weiche_agent_tokens_total{${model}}[$__rate_interval]))`,
      legend: "{{model}} {{kind}}",
    },
  ),
  lines(
    {
      title: "Voided per hour",
      description:
        "Credits of answers that their clients did not get, by model. If it is more than a small share, nodes or routers die.",
      unit: "short",
      empty: "no router",
      stacked: true,
      width: 12,
    },
    { expr: `sum by (model) (increase(weiche_router_credits_voided_total{${model}}[1h]))`, legend: "{{model}}" },
  ),
];

const records = [
  lines(
    {
      title: "Usage records",
      description:
        "`repeated`: already known, sent again by a node. `refused`: set aside and billed to nobody. `voided`: the cost was cancelled.",
      unit: "cps",
      empty: "no router",
      stacked: true,
    },
    {
      expr: `sum by (result) (rate(weiche_router_usage_records_total{${router}}[$__rate_interval]))`,
      legend: "{{result}}",
    },
  ),
  lines(
    {
      title: "Set aside",
      description:
        "Usage records of the last hour that are billed to nobody, by reason. `weiche usage refused` shows them.",
      unit: "none",
      empty: "no router",
      stacked: true,
    },
    { expr: `sum by (reason) (increase(weiche_router_usage_refused_total{${router}}[1h]))`, legend: "{{reason}}" },
  ),
  lines(
    {
      title: "Commit, 95 %",
      description: "Time of the database for a batch of usage records.",
      unit: "s",
      empty: "no usage",
    },
    {
      expr: `histogram_quantile(0.95, sum by (instance, le) (rate(weiche_router_usage_commit_seconds_bucket{${router}}[$__rate_interval])))`,
      legend: "{{instance}}",
    },
  ),
];

const outboxes = [
  lines(
    {
      title: "Not committed, by node",
      description: "Usage records that no router has committed yet.",
      unit: "none",
      empty: "no node",
    },
    { expr: `weiche_agent_outbox_records{${node}}`, legend: "{{node}}" },
  ),
  lines(
    {
      title: "Oldest, by node",
      description: "Age of the oldest usage record that no router has committed yet.",
      unit: "s",
      empty: "no node",
    },
    { expr: `weiche_agent_outbox_oldest_seconds{${node}}`, legend: "{{node}}" },
  ),
  lines(
    {
      title: "Room for usage",
      description: "Free space on the disk of each outbox. Below 1 MiB the node accepts no requests.",
      unit: "bytes",
      empty: "no node reports it",
    },
    { expr: `weiche_agent_outbox_disk_free_bytes{${node}}`, legend: "{{node}}" },
  ),
  lines(
    {
      title: "Outboxes with room for usage",
      description: "0 for a node whose outbox has no room. Such a node accepts no requests.",
      unit: "none",
      empty: "no node",
      width: 12,
    },
    { expr: `weiche_agent_outbox_admitting{${node}}`, legend: "{{node}}" },
  ),
  lines(
    {
      title: "Answers lost with their router",
      description: "Finished answers of the last hour that cost nothing, because their router died before delivery.",
      unit: "none",
      empty: "no node",
      width: 12,
    },
    { expr: `increase(weiche_agent_answers_voided_total{${node}}[1h])`, legend: "{{node}}" },
  ),
];

const evaluation = [
  lines(
    {
      title: "Since the last evaluation",
      description:
        "Time since usage was compared with quotas, by router. Above ten minutes, accounts exceed their limits.",
      unit: "s",
      empty: "no router",
      width: 12,
    },
    { expr: `instance:weiche_router_evaluation_age_seconds:max{${router}}`, legend: "{{instance}}" },
  ),
  lines(
    {
      title: "Refused for quota, blocks and limits",
      description:
        "Requests refused because of quotas, blocks and limits of their account. Only reasons that occurred.",
      unit: "reqps",
      empty: "nothing was refused",
      stacked: true,
      width: 12,
    },
    {
      expr: `sum by (reason) (rate(weiche_router_refusals_total{${router}, reason=~"insufficient_quota|no_package|key_blocked_by_limit|user_blocked|rate_limit_minute|rate_limit_parallel"}[$__rate_interval])) > 0`,
      legend: "{{reason}}",
    },
  ),
];

export const money = dashboard({
  uid: "weiche-money",
  title: "Money",
  description: "From usage at the nodes to credits in the ledger. Shows models, but no accounts.",
  variables: ["router", "node", "model"],
  rows: { Now: now, Credits: credits, "Usage records": records, "Outboxes of the nodes": outboxes, Quotas: evaluation },
});
