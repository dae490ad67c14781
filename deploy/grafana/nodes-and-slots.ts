/** The dashboard *Nodes and slots*: the model that each slot serves, and the state of slots, GPUs and hosts. */
import { dashboard } from "./dashboard.ts";
import { gpus, hosts } from "./hosts.ts";
import { lanes, lines } from "./panels.ts";

const slot = 'node=~"$node", slot=~"$slot"';
const ofModel = `${slot}, model=~"$model"`;

const over = [
  lanes(
    {
      title: "Model of each slot",
      description: "The model that the slot serves, starts or stops. One lane per slot.",
      unit: "none",
      empty: "no slot has a model",
      height: 10,
    },
    {
      expr: `label_join(weiche_agent_slot_active_model{${ofModel}} == 1, "lane", " / ", "node", "slot")`,
      lane: "lane",
      word: "model",
    },
  ),
  lanes(
    {
      title: "State of each slot",
      description:
        "Between two models a slot drains, stops one engine and starts the next. For `failed`, see the alerts.",
      unit: "none",
      empty: "no slot",
      height: 10,
      colours: {
        active: "green",
        empty: "text",
        starting: "blue",
        "draining-open": "yellow",
        "draining-closed": "orange",
        stopping: "purple",
        failed: "red",
      },
    },
    {
      expr: `label_join(weiche_agent_slot_state{${slot}} == 1, "lane", " / ", "node", "slot")`,
      lane: "lane",
      word: "state",
    },
  ),
];

const waiters = [
  lines(
    {
      title: "Waiting, by model",
      description: "Held requests, each counted once per answer (`n`). Above `waitersMax` requests are refused.",
      unit: "none",
      empty: "no slot",
      stacked: true,
    },
    { expr: `sum by (model) (weiche_agent_model_waiting_requests{${ofModel}})`, legend: "{{model}}" },
  ),
  lines(
    {
      title: "Oldest waiter",
      description:
        "Waiting time of the oldest held request. Alert above 120 s. Requests are refused after `waiterSeconds`.",
      unit: "s",
      empty: "no slot",
    },
    { expr: `weiche_agent_oldest_waiter_seconds{${slot}}`, legend: "{{node}} / {{slot}}" },
  ),
  lines(
    {
      title: "Running",
      description: "Places of the engine in use: running requests, each counted once per answer (`n`).",
      unit: "none",
      empty: "no slot",
      stacked: true,
    },
    { expr: `weiche_agent_running_requests{${slot}}`, legend: "{{node}} / {{slot}}" },
  ),
];

const switches = [
  lines(
    {
      title: "Parts of a switch",
      description: "Average duration of each part in the last 15 minutes: drain, stop, memory, start, probe.",
      unit: "s",
      empty: "no switch in 15 minutes",
      stacked: true,
    },
    {
      expr: `sum by (phase) (increase(weiche_agent_switch_phase_seconds_sum{${slot}}[15m])) / (sum by (phase) (increase(weiche_agent_switch_phase_seconds_count{${slot}}[15m])) > 0)`,
      legend: "{{phase}}",
    },
  ),
  lines(
    {
      title: "Switches per hour",
      description: "Switches from one model to the next, by slot.",
      unit: "none",
      empty: "no slot has switched",
    },
    { expr: `increase(weiche_agent_switch_seconds_count{${slot}}[1h])`, legend: "{{node}} / {{slot}}" },
  ),
  lines(
    {
      title: "Share of time spent switching",
      description: "Alert above a half, because the slot has too many models.",
      unit: "percentunit",
      empty: "no slot has switched",
      max: 1,
    },
    { expr: `instance_node_slot:weiche_agent_switch_seconds:rate15m{${slot}}`, legend: "{{node}} / {{slot}}" },
  ),
  lines(
    {
      title: "Estimated minus actual wait",
      description:
        "Quantiles (10, 50 and 90 %) for requests that waited longer than a second. Far from 0, the estimates shown to people are wrong.",
      unit: "s",
      empty: "no request has waited longer than a second",
    },
    ...[0.1, 0.5, 0.9].map((quantile) => ({
      expr: `histogram_quantile(${quantile}, sum by (le) (rate(weiche_agent_wait_estimate_error_seconds_bucket{${slot}}[15m])))`,
      legend: `p${quantile * 100}`,
    })),
  ),
  lines(
    {
      title: "Drain closes in",
      description: "Time until an open drain closes. Until then the slot accepts requests for the old model.",
      unit: "s",
      empty: "no drain is open",
    },
    { expr: `weiche_agent_slot_drain_closes_seconds{${slot}}`, legend: "{{node}} / {{slot}}" },
  ),
  lines(
    {
      title: "Refused by slots",
      description: "Requests refused by slots per minute, by code. Only codes that occurred.",
      unit: "cpm",
      empty: "nothing was refused",
      stacked: true,
    },
    {
      expr: `60 * sum by (code) (rate(weiche_agent_refusals_total{${ofModel}}[$__rate_interval])) > 0`,
      legend: "{{code}}",
    },
  ),
  lines(
    {
      title: "Sleeping engines",
      description: "GPU memory that each sleeping engine keeps.",
      unit: "bytes",
      empty: "no engine sleeps, or its memory is not measured",
      stacked: true,
    },
    { expr: `weiche_agent_sleeper_gpu_memory_bytes{${ofModel}}`, legend: "{{node}} / {{slot}} {{model}}" },
  ),
];

const engines = [
  lines(
    {
      title: "Engine failures per hour",
      description: "Engine failures by kind. Only kinds that occurred.",
      unit: "none",
      empty: "no engine failed",
      stacked: true,
    },
    {
      expr: `sum by (model, what) (increase(weiche_agent_engine_failures_total{${ofModel}}[1h])) > 0`,
      legend: "{{model}} {{what}}",
    },
  ),
  lines(
    {
      title: "Engines ready per hour",
      description: "Engines that were proven ready: started, woken, adopted from an earlier agent, or probed again.",
      unit: "none",
      empty: "no slot",
      stacked: true,
    },
    { expr: `sum by (how) (increase(weiche_agent_engine_ready_total{${ofModel}}[1h]))`, legend: "{{how}}" },
  ),
  lines(
    {
      title: "Engines lost and restarted, per hour",
      description: "Lost engines by the reason of the loss.",
      unit: "none",
      empty: "no node",
      stacked: true,
    },
    {
      expr: 'sum by (model, reason) (increase(weiche_agent_engine_restarts_total{node=~"$node", model=~"$model"}[1h]))',
      legend: "{{model}} {{reason}}",
    },
  ),
  lines(
    {
      title: "KV cache in use",
      description: "Near 1 for long, the engine moves requests out of its batches. llama-server does not report it.",
      unit: "percentunit",
      empty: "no engine reports it",
      max: 1,
      width: 12,
    },
    { expr: `weiche_agent_engine_kv_cache_use_ratio{${ofModel}}`, legend: "{{node}} / {{slot}} {{model}}" },
  ),
  lines(
    {
      title: "Prompts found in the prefix cache",
      description: "Share of prompt tokens that the awake engine found in its cache since its start.",
      unit: "percentunit",
      empty: "no engine reports it",
      max: 1,
      width: 12,
    },
    { expr: `weiche_agent_engine_prefix_cache_hit_ratio{${ofModel}}`, legend: "{{node}} / {{slot}} {{model}}" },
  ),
];

const nodes = [
  lanes(
    {
      title: "State of each node",
      description: "The state as seen by each router. One lane per node and router.",
      unit: "none",
      empty: "no node",
      height: 8,
      width: 16,
      colours: { live: "green", maintenance: "blue", "not-admitting": "orange", silent: "red", gone: "dark-red" },
    },
    {
      expr: 'label_join(weiche_router_node_state{instance=~"$router", node=~"$node"} == 1, "lane", " at ", "node", "instance")',
      lane: "lane",
      word: "state",
    },
  ),
  lines(
    {
      title: "Age of the last report",
      description: "Nodes report every second. Above 3 s the router sends no requests to the node.",
      unit: "s",
      empty: "no node",
    },
    {
      expr: 'weiche_router_node_report_age_seconds{instance=~"$router", node=~"$node"}',
      legend: "{{node}} at {{instance}}",
    },
  ),
];

export const nodesAndSlots = dashboard({
  uid: "weiche-nodes-and-slots",
  title: "Nodes and slots",
  description: "The model of each slot, and the state of slots, GPUs and hosts.",
  variables: ["router", "node", "slot", "model"],
  rows: {
    Slots: over,
    Waiters: waiters,
    Switches: switches,
    Engines: engines,
    Nodes: nodes,
    GPUs: gpus,
    Hosts: hosts,
  },
});
