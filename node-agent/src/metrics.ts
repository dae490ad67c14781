/** The agent's metrics. Labels come from the configuration and from fixed words: a client cannot add a series. */
import { createMetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import { GapHistogram } from "./gap-histogram.ts";
import { createMachineMetrics } from "./machine-metrics.ts";

export type Metrics = ReturnType<typeof createMetrics>;

const switchBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
const tokenBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const ofModel: ("slot" | "model")[] = ["slot", "model"];

export function createMetrics() {
  const metricRegistry = createMetricRegistry();
  const { registry, counter, gauge, histogram } = metricRegistry;
  let publish = () => Promise.resolve();
  return {
    registry,
    /** The answer to a scrape by Prometheus. */
    scrape: {
      contentType: registry.contentType,
      /** Calls back before each answer, to bring the gauges up to date. */
      onScrape: (callback: () => Promise<void>) => void (publish = callback),
      metrics: () => publish().then(() => registry.metrics()),
    },
    requests: counter("weiche_agent_requests_total", "Requests by how they ended", ["model", "outcome"]),
    refusals: counter("weiche_agent_refusals_total", "Requests that a slot refused, by error code", [
      ...ofModel,
      "code",
    ]),
    waited: histogram("weiche_agent_wait_seconds", "How long an admitted request was held", switchBuckets, ofModel),
    running: gauge("weiche_agent_running_requests", "Requests that run, by answers", ["slot"]),
    waiting: gauge("weiche_agent_waiting_requests", "Requests that are held, by answers", ["slot"]),
    slotState: gauge("weiche_agent_slot_state", "1 for the state that the slot is in", ["slot", "state"]),
    switches: histogram("weiche_agent_switch_seconds", "From the first waiter to the proven engine", switchBuckets, [
      "slot",
    ]),
    switchPhases: histogram("weiche_agent_switch_phase_seconds", "Parts of a switch", switchBuckets, ["slot", "phase"]),
    engineReady: counter("weiche_agent_engine_ready_total", "Engines proven ready, by how they came to be", [
      ...ofModel,
      "how",
    ]),
    engineFailures: counter(
      "weiche_agent_engine_failures_total",
      "Failed starts, stops, sleeps, wakes, probes, and exits",
      [...ofModel, "what"],
    ),
    engineRestarts: counter(
      "weiche_agent_engine_restarts_total",
      "Engines started again after they were lost, by why they were lost",
      ["model", "reason"],
    ),
    engineWindowMissing: gauge(
      "weiche_agent_engine_window_missing_tokens",
      "How many tokens of the catalogue's context window the engine does not take",
      ofModel,
    ),
    kvCacheUse: gauge("weiche_agent_engine_kv_cache_use_ratio", "KV cache in use by the awake engine, 0 to 1", ofModel),
    prefixCacheHits: gauge(
      "weiche_agent_engine_prefix_cache_hit_ratio",
      "Prompt tokens that the awake engine found in its prefix cache, 0 to 1",
      ofModel,
    ),
    firstToken: histogram(
      "weiche_agent_time_to_first_token_seconds",
      "From admission to the engine's first chunk",
      tokenBuckets,
      ["model"],
    ),
    interToken: new GapHistogram(
      "weiche_agent_inter_token_seconds",
      "Time between two output chunks of an answer",
      registry,
    ),
    tokens: counter("weiche_agent_tokens_total", "Tokens as billed", ["model", "kind"]),
    outboxRecords: gauge("weiche_agent_outbox_records", "Usage records that no router has committed yet"),
    outboxOldest: gauge("weiche_agent_outbox_oldest_seconds", "Age of the oldest uncommitted usage record"),
    outboxAdmitting: gauge("weiche_agent_outbox_admitting", "0 while the outbox's disk is full"),
    answersVoided: counter(
      "weiche_agent_answers_voided_total",
      "Finished answers that a router that died had not settled",
    ),
    usageDelivered: counter("weiche_agent_usage_delivered_total", "Usage records that a router has committed"),
    routerLink: gauge("weiche_agent_router_link_up", "1 while the link to a router is up", ["router"]),
    dataSessions: gauge("weiche_agent_data_sessions", "Open data sessions", ["router"]),
    foreignProcesses: counter(
      "weiche_agent_foreign_gpu_processes_total",
      "GPU processes seen that are no engine of this node",
      ["slot"],
    ),
    jobRuns: gauge("weiche_agent_job_last_run_timestamp_seconds", "When the job last ended without an error", ["job"]),
    sleeperMemory: gauge("weiche_agent_sleeper_gpu_memory_bytes", "GPU memory that a sleeping engine keeps", ofModel),
    hostCpuUse: gauge("weiche_agent_host_cpu_use_ratio", "CPU time in use over all cores of the host, 0 to 1"),
    hostMemoryTotal: gauge("weiche_agent_host_memory_total_bytes", "Memory of the host"),
    hostMemoryAvailable: gauge(
      "weiche_agent_host_memory_available_bytes",
      "Memory of the host that programs could get",
    ),
    gpuMemoryUsed: gauge("weiche_agent_gpu_memory_used_bytes", "GPU memory in use", ["gpu"]),
    gpuMemoryTotal: gauge("weiche_agent_gpu_memory_total_bytes", "GPU memory", ["gpu"]),
    gpuUtilisation: gauge("weiche_agent_gpu_utilisation_ratio", "GPU utilisation, 0 to 1", ["gpu"]),
    gpuTemperature: gauge("weiche_agent_gpu_temperature_celsius", "GPU temperature", ["gpu"]),
    gpuPower: gauge("weiche_agent_gpu_power_watts", "GPU power draw", ["gpu"]),
    machine: createMachineMetrics(metricRegistry),
  };
}
