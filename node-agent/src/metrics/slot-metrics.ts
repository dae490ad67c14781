/** The metrics of slots and engines: their declarations, and their values at a scrape. */
import { beginAtZero, type MetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { stateWords, type SlotView } from "../slots/slot-view.ts";

type SlotMetrics = ReturnType<typeof createSlotMetrics>;

const switchBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
const estimateErrorBuckets = [-120, -60, -30, -15, -8, -4, -2, -1, 0, 1, 2, 4, 8, 15, 30, 60, 120];
const ofModel: ("slot" | "model")[] = ["slot", "model"];

export function createSlotMetrics(registry: MetricRegistry) {
  return { ...createGauges(registry), ...createCounters(registry), ...createEngineGauges(registry) };
}

function createGauges({ gauge, histogram }: MetricRegistry) {
  return {
    slotState: gauge(
      "weiche_agent_slot_state",
      `1 for the current state of the slot, 0 for the others: ${quoted(Object.values(stateWords))}`,
      ["slot", "state"],
      "`failed`",
    ),
    slotStateAge: gauge(
      "weiche_agent_slot_state_seconds",
      "How long the slot has been in its state. In `draining-closed`, how long the drain has been closed",
      ["slot"],
      "`starting` or `stopping` for longer than the model usually takes",
    ),
    activeModel: gauge(
      "weiche_agent_slot_active_model",
      "1 for the model that the slot serves, starts or stops, 0 for its other models",
      ofModel,
    ),
    nextModel: gauge("weiche_agent_slot_next_model", "1 for the model that comes next, 0 for the others", ofModel),
    drainCloses: gauge(
      "weiche_agent_slot_drain_closes_seconds",
      "Time until a drain closes for the old model. Absent if no drain is open",
      ["slot"],
    ),
    running: gauge(
      "weiche_agent_running_requests",
      "Running requests, counted by their answers (`n`), so equal to the engine's places in use",
      ["slot"],
    ),
    waiting: gauge(
      "weiche_agent_waiting_requests",
      "Held requests, counted by their answers (`n`), whether they wait for a switch or for places",
      ["slot"],
      "near `waitersMax` of the slot: more are refused",
    ),
    modelWaiting: gauge(
      "weiche_agent_model_waiting_requests",
      "Held requests of each model of the slot, counted in the same way",
      ofModel,
    ),
    oldestWaiter: gauge(
      "weiche_agent_oldest_waiter_seconds",
      "Age of the oldest held request. 0 if none is held",
      ["slot"],
      "near `waiterSeconds` of the slot, after which the request is refused",
    ),
    waited: histogram(
      "weiche_agent_wait_seconds",
      "How long an admitted request was held",
      switchBuckets,
      ofModel,
      "its p95 is near the wait that your users accept",
    ),
    waitEstimateError: histogram(
      "weiche_agent_wait_estimate_error_seconds",
      "Estimated wait minus actual wait, of admitted requests that waited for more than a second. Below 0 the request waited longer than estimated",
      estimateErrorBuckets,
      ofModel,
      "many above 30 s on either side: the waits that users are shown are wrong",
    ),
    switches: histogram(
      "weiche_agent_switch_seconds",
      "Duration of a switch, from the first waiter to the probe of the engine",
      switchBuckets,
      ["slot"],
      "many of them: the slot has more models than it can serve",
    ),
    switchPhases: histogram(
      "weiche_agent_switch_phase_seconds",
      "Parts of a switch: `drain`, `stop`, `memory`, `start`, `probe`",
      switchBuckets,
      ["slot", "phase"],
    ),
  };
}

function createCounters({ counter }: MetricRegistry) {
  return {
    refusals: counter(
      "weiche_agent_refusals_total",
      "Requests that a slot refused, by error code. `client_left`: the client left while the request waited. `too_many_answers`: `n` exceeds the engine's places",
      [...ofModel, "code"],
      "`overloaded` or `model_unavailable` rises",
    ),
    engineReady: counter(
      "weiche_agent_engine_ready_total",
      "Engines that became ready: `started`, `woken`, `adopted` from an earlier agent, `probed` again",
      [...ofModel, "how"],
    ),
    engineFailures: counter(
      "weiche_agent_engine_failures_total",
      "Faults of engines: `start`, `stop`, `sleep`, `wake`, `probe`, `exit`, `answer`, `shortfall` (the engine refused something that the service promises)",
      [...ofModel, "what"],
      "it rises",
    ),
    engineRestarts: counter(
      "weiche_agent_engine_restarts_total",
      "Restarts of lost engines, by the reason of the loss: `exit` (ended by itself), `silent` or `refused` (found by a request), `failing` (consecutive requests), `probe`, `sleep`, `wake` (this step failed), `start` (the previous start failed)",
      ["model", "reason"],
      "it rises",
    ),
    foreignProcesses: counter(
      "weiche_agent_foreign_gpu_processes_total",
      "GPU processes that are not engines of this node",
      ["slot"],
      "it rises: these processes take memory that a switch needs",
    ),
  };
}

function createEngineGauges({ gauge }: MetricRegistry) {
  return {
    engineWindowMissing: gauge(
      "weiche_agent_engine_window_missing_tokens",
      "By how much the engine's context (`max_model_len` of vLLM, a slot's context of llama-server) is shorter than the catalogue's. 0 if it is not. Absent if the engine does not report it. Clients see the engine's context",
      ofModel,
      "above 0: the catalogue promises more than the engine accepts",
    ),
    kvCacheUse: gauge(
      "weiche_agent_engine_kv_cache_use_ratio",
      "Share of the awake engine's KV cache that is in use, 0 to 1. Absent if the engine does not report it (llama-server)",
      ofModel,
      "near 1 for long: the engine removes requests from its batches",
    ),
    prefixCacheHits: gauge(
      "weiche_agent_engine_prefix_cache_hit_ratio",
      "Share of prompt tokens that the awake engine found in its prefix cache since it started, 0 to 1",
      ofModel,
    ),
    sleeperMemory: gauge("weiche_agent_sleeper_gpu_memory_bytes", "GPU memory that a sleeping engine keeps", ofModel),
  };
}

const refusalWords = [
  ...["model_switching", "model_unavailable", "overloaded", "maintenance"],
  ...["too_many_answers", "client_left"],
];
const readyWords = ["started", "woken", "adopted", "probed"];
const failureWords = ["start", "stop", "sleep", "wake", "probe", "exit", "answer", "shortfall"];

/** Creates the series of a slot that begin with its first event. */
export function beginSlotAtZero(metrics: SlotMetrics, slot: SlotName, models: Iterable<ModelId>): void {
  const ofSlot = { slot: [slot], model: models };
  beginAtZero(metrics.foreignProcesses, { slot: [slot] });
  beginAtZero(metrics.refusals, { ...ofSlot, code: refusalWords });
  beginAtZero(metrics.engineReady, { ...ofSlot, how: readyWords });
  beginAtZero(metrics.engineFailures, { ...ofSlot, what: failureWords });
}

export function publishSlot(metrics: SlotMetrics, view: SlotView): void {
  const { name: slot, running, waiting, waiters, sleepers, closesInMs } = view;
  metrics.running.set({ slot }, running);
  metrics.waiting.set({ slot }, waiting);
  metrics.slotStateAge.set({ slot }, view.stateAgeMs / 1000);
  metrics.oldestWaiter.set({ slot }, (view.oldestWaitingMs ?? 0) / 1000);
  if (closesInMs === undefined) metrics.drainCloses.remove({ slot });
  else metrics.drainCloses.set({ slot }, closesInMs / 1000);
  for (const model of view.models) {
    metrics.activeModel.set({ slot, model }, isNamed(model, view.activeModel, view.activeModels) ? 1 : 0);
    metrics.nextModel.set({ slot, model }, isNamed(model, view.nextModel, view.nextModels) ? 1 : 0);
    const held = waiters.find((each) => each.model === model)?.waiting ?? 0;
    metrics.modelWaiting.set({ slot, model }, held);
  }
  for (const { model, keptBytes } of sleepers)
    if (keptBytes !== undefined) metrics.sleeperMemory.set({ slot, model }, keptBytes);
}

/** An engine may serve several models. */
function isNamed(model: ModelId, one: ModelId | undefined, several: readonly ModelId[] = []): boolean {
  return model === one || several.includes(model);
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(", ");
}
