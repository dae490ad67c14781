/** The metrics of slots and engines: declared here, and set from what the slots are at a scrape. */
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
      `1 for the state that the slot is in, 0 for the others: ${quoted(Object.values(stateWords))}`,
      ["slot", "state"],
      "`failed`",
    ),
    slotStateAge: gauge(
      "weiche_agent_slot_state_seconds",
      "How long the slot has been in its state; in `draining-closed`: how long the drain has been closed",
      ["slot"],
      "`starting` or `stopping` for longer than the model takes",
    ),
    activeModel: gauge(
      "weiche_agent_slot_active_model",
      "1 for the model that the slot serves, starts or stops, 0 for its others",
      ofModel,
    ),
    nextModel: gauge("weiche_agent_slot_next_model", "1 for the model that comes next, 0 for the others", ofModel),
    drainCloses: gauge(
      "weiche_agent_slot_drain_closes_seconds",
      "In how long a drain closes for the old model; absent where no drain is open",
      ["slot"],
    ),
    running: gauge(
      "weiche_agent_running_requests",
      "Requests that run, each as often as it asks for answers (`n`): places of the engine in use",
      ["slot"],
    ),
    waiting: gauge(
      "weiche_agent_waiting_requests",
      "Requests that are held, each as often as it asks for answers, whether they wait for a switch or for places",
      ["slot"],
      "near `waitersMax` of the slot: more are refused",
    ),
    modelWaiting: gauge("weiche_agent_model_waiting_requests", "The same for each model of the slot", ofModel),
    oldestWaiter: gauge(
      "weiche_agent_oldest_waiter_seconds",
      "How long the oldest request that is held has waited; 0: none is",
      ["slot"],
      "near `waiterSeconds` of the slot, after which it is refused",
    ),
    waited: histogram(
      "weiche_agent_wait_seconds",
      "How long an admitted request was held",
      switchBuckets,
      ofModel,
      "its p95 is near what your users bear",
    ),
    waitEstimateError: histogram(
      "weiche_agent_wait_estimate_error_seconds",
      "How much longer than its wait the estimate was that a request got when it came, of admitted requests that waited for more than a second; below 0: it waited longer",
      estimateErrorBuckets,
      ofModel,
      "many beyond 30 s on either side: what people are told about their wait is wrong",
    ),
    switches: histogram(
      "weiche_agent_switch_seconds",
      "A switch, from the first waiter to the proven engine",
      switchBuckets,
      ["slot"],
      "many of them: more models than the slot can serve",
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
      "Requests that a slot refused, by error code; `client_left`: gone while it waited; `too_many_answers`: `n` is more than the engine gives",
      [...ofModel, "code"],
      "`overloaded` or `model_unavailable` rises",
    ),
    engineReady: counter(
      "weiche_agent_engine_ready_total",
      "Engines proven ready: `started`, `woken`, `adopted` from an earlier agent, `probed` once more",
      [...ofModel, "how"],
    ),
    engineFailures: counter(
      "weiche_agent_engine_failures_total",
      "What went wrong with engines: `start`, `stop`, `sleep`, `wake`, `probe`, `exit`, `answer`, `shortfall` (it refused what the service promises)",
      [...ofModel, "what"],
      "it rises",
    ),
    engineRestarts: counter(
      "weiche_agent_engine_restarts_total",
      "Engines that run again after they were lost, by why: `exit` (ended by themselves), `silent` or `refused` (as a request found them), `failing` (requests in a row), `probe`, `sleep`, `wake` (did not do so as asked), `start` (the start before failed)",
      ["model", "reason"],
      "it rises",
    ),
    foreignProcesses: counter(
      "weiche_agent_foreign_gpu_processes_total",
      "GPU processes seen that are no engine of this node",
      ["slot"],
      "it rises: they take memory that a switch needs",
    ),
  };
}

function createEngineGauges({ gauge }: MetricRegistry) {
  return {
    engineWindowMissing: gauge(
      "weiche_agent_engine_window_missing_tokens",
      "How much shorter the requests are that the engine takes (`max_model_len` of vLLM, the context of a slot of llama-server) than the catalogue says; 0: none; absent: the engine does not say. What the engine takes is what clients are told",
      ofModel,
      "above 0: the catalogue promises more than the engine does",
    ),
    kvCacheUse: gauge(
      "weiche_agent_engine_kv_cache_use_ratio",
      "How much of its KV cache the awake engine uses, 0 to 1; absent: it does not say (llama-server)",
      ofModel,
      "near 1 for long: the engine moves requests out of its batches",
    ),
    prefixCacheHits: gauge(
      "weiche_agent_engine_prefix_cache_hit_ratio",
      "What share of prompt tokens the awake engine found in its prefix cache since it started, 0 to 1",
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

/** Makes the series of a slot that begin with its first event. */
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
