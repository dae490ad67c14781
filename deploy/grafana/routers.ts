/** The panels of routers and their database. */
import { lines } from "./panels.ts";

const router = 'instance=~"$router"';

export const routers = [
  lines(
    {
      title: "Event loop, 99 %",
      description: "Lag of the event loops of routers and agents. Above 0.25 s streams stutter.",
      unit: "s",
      empty: "no router",
    },
    { expr: 'nodejs_eventloop_lag_p99_seconds{job=~"weiche-.*"}', legend: "{{instance}}" },
  ),
  lines(
    { title: "Processor", description: "Cores in use by each router and agent.", unit: "none", empty: "no router" },
    { expr: 'rate(process_cpu_seconds_total{job=~"weiche-.*"}[$__rate_interval])', legend: "{{instance}}" },
  ),
  lines(
    { title: "Memory", description: "Resident memory of each router and agent.", unit: "bytes", empty: "no router" },
    { expr: 'process_resident_memory_bytes{job=~"weiche-.*"}', legend: "{{instance}}" },
  ),
  lines(
    {
      title: "Data connections",
      description: "Data connections of each router to the nodes. A linked node without one gets no requests.",
      unit: "none",
      empty: "no node",
    },
    { expr: `sum by (instance) (weiche_router_data_sessions{${router}})`, legend: "{{instance}}" },
  ),
  lines(
    {
      title: "Versions",
      description: "Routers and agents by version. Alert if several versions run for a day.",
      unit: "none",
      empty: "no router",
    },
    { expr: "count by (version) (weiche_build_info)", legend: "{{version}}" },
  ),
  lines(
    {
      title: "Proofs of identity",
      description: "Sign-ins to the portal per minute, by outcome.",
      unit: "cpm",
      empty: "nobody signed in",
      stacked: true,
    },
    {
      expr: `60 * sum by (outcome) (rate(weiche_router_logins_total{${router}}[$__rate_interval]))`,
      legend: "{{outcome}}",
    },
  ),
];

export const database = [
  lines(
    {
      title: "Round trip, 95 %",
      description: "Time of the database for a small statement. Alert above 0.1 s.",
      unit: "s",
      empty: "no statement was answered",
    },
    { expr: `instance:weiche_router_database_round_trip_seconds:p95_rate10m{${router}}`, legend: "{{instance}}" },
  ),
  lines(
    {
      title: "Errors",
      description: "Failed uses of the database per minute. Those of jobs have the job's name. Only uses that failed.",
      unit: "cpm",
      empty: "nothing failed",
      stacked: true,
    },
    {
      expr: `60 * sum by (what) (rate(weiche_router_database_errors_total{${router}}[$__rate_interval])) > 0`,
      legend: "{{what}}",
    },
  ),
  lines(
    {
      title: "Connections in use",
      description: "Share of each pool's connections in use, and statements that wait for one.",
      unit: "short",
      empty: "no router",
    },
    {
      expr: `weiche_router_database_connections{${router}, state="used"} / on (instance, pool) weiche_router_database_connections_max{${router}}`,
      legend: "{{instance}} {{pool}}",
    },
    { expr: `weiche_router_database_waiting{${router}}`, legend: "{{instance}} {{pool}} waiting" },
  ),
  lines(
    {
      title: "Age of the key cache",
      description: "Time since changes of keys were read. Above 10 s revoked keys still work.",
      unit: "s",
      empty: "no router",
    },
    { expr: `weiche_router_key_cache_age_seconds{${router}}`, legend: "{{instance}}" },
  ),
];
