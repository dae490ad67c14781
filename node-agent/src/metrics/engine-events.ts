/** Events of slots and engines. One function per event writes the log line and updates the metric. */
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { describeError, type Log } from "@weiche/shared/program/log.ts";
import type { EngineRestarts, RestartReason } from "./engine-restarts.ts";
import type { EngineWindowEvents } from "../engines/engine-windows.ts";
import type { EngineLogEvents } from "../engines/log/engine-log.ts";
import type { HandleStoreEvents } from "../engines/handle-store.ts";
import type { SlotEngineEvents } from "../engines/slot-engines-options.ts";
import type { SlotMemoryEvents } from "../engines/slot-memory.ts";
import type { Metrics } from "./metrics.ts";
import type { EngineFailures } from "../slots/engine-failures.ts";
import type { SlotEvents } from "../slots/slot-events.ts";
import { stateWords } from "../slots/slot-view.ts";
import type { SwitchHistory } from "../slots/switch-history.ts";

/** Reasons of a suspicion that count as a restart of the engine. */
const suspicions: ReadonlySet<string> = new Set<RestartReason>(["silent", "refused", "failing"]);

/** Estimates of shorter waits are not measured. */
const judgedFromMs = 1_000;

export function createSlotEvents(
  log: Log,
  metrics: Metrics,
  restarts: EngineRestarts,
  failures: EngineFailures,
  history: Pick<SwitchHistory, "switched" | "startFailed">,
): SlotEvents {
  const failed = (slot: SlotName, model: ModelId, what: "start" | "stop" | "exit", reason: string) => {
    failures.failed(slot, model, what, reason);
    metrics.engineFailures.inc({ slot, model, what });
    if (what !== "stop") restarts.lost(slot, model, what);
  };
  return {
    stateChanged(slot, state, active) {
      for (const each of Object.values(stateWords))
        metrics.slotState.set({ slot, state: each }, each === state ? 1 : 0);
      log.debug({ slot, state, model: active }, "slot changed");
    },
    requestAdmitted(slot, model, waitedMs, estimatedMs) {
      metrics.waited.observe({ slot, model }, waitedMs / 1000);
      if (estimatedMs !== undefined && waitedMs > judgedFromMs)
        metrics.waitEstimateError.observe({ slot, model }, (estimatedMs - waitedMs) / 1000);
    },
    requestRefused: (slot, model, code) => metrics.refusals.inc({ slot, model, code }),
    waiterLeft: (slot, model) => metrics.refusals.inc({ slot, model, code: "client_left" }),
    switched(slot, report) {
      const { from, model, tookMs, phasesMs } = report;
      history.switched(slot, report);
      metrics.switches.observe({ slot }, tookMs / 1000);
      for (const [phase, ms] of Object.entries(phasesMs)) metrics.switchPhases.observe({ slot, phase }, ms / 1000);
      log.info({ slot, from, model, tookMs: Math.round(tookMs), phasesMs }, "switched");
    },
    startFailed(slot, model, reason) {
      failed(slot, model, "start", reason);
      history.startFailed(slot, model);
      log.error({ slot, model, reason }, "engine did not start");
    },
    stopFailed(slot, model, reason) {
      failed(slot, model, "stop", reason);
      log.error({ slot, model, reason }, "engine did not stop");
    },
    readopted(slot, found) {
      if (!found) return;
      const { model } = found;
      if ("endpoint" in found) log.info({ slot, model }, "took over the engine of an earlier agent");
      else log.info({ slot, ...found }, "still waiting for an engine that an earlier agent started");
    },
    readoptFailed(slot, reason) {
      failures.failed(slot, undefined, "search", reason);
      log.error({ slot, reason }, "could not look for engines of an earlier agent");
    },
    engineExited(slot, model, { reason, output }) {
      failed(slot, model, "exit", reason);
      log.error({ slot, model, reason, output }, "engine ended by itself");
    },
    engineDied(slot, model, reason) {
      failed(slot, model, "exit", reason);
      log.error({ slot, model, reason }, "engine reports that it is dead; it is ended and started again");
    },
    engineSuspected(slot, model, reason) {
      if (suspicions.has(reason)) restarts.lost(slot, model, reason as RestartReason);
      failures.failed(slot, model, "suspected", reason);
      log.warn(
        { slot, model, reason },
        "engine is suspected to hang or fail: it gets no new requests and is restarted",
      );
    },
  };
}

export function createEngineEvents(
  log: Log,
  metrics: Metrics,
  restarts: EngineRestarts,
  failures: EngineFailures,
): SlotEngineEvents & SlotMemoryEvents & HandleStoreEvents & EngineLogEvents & EngineWindowEvents {
  return {
    engineReady(slot, model, how, tookMs) {
      restarts.ready(slot, model, how === "started");
      failures.ready(slot, model);
      metrics.engineReady.inc({ slot, model, how });
      log.info({ slot, model, how, tookMs: Math.round(tookMs) }, "engine ready");
    },
    engineSharesContext(slot, model, slots, used) {
      log.warn(
        { slot, model, slots, used },
        "the slots of llama-server share one context: only as many are used as can be full; add -np N without -kvu",
      );
    },
    engineAsleep: (slot, model, tookMs) => log.info({ slot, model, tookMs: Math.round(tookMs) }, "engine asleep"),
    engineStopped: (slot, model) => log.info({ slot, model }, "engine stopped"),
    engineSurprised(slot, model, what, reason) {
      if (what !== "stop") restarts.lost(slot, model, what);
      metrics.engineFailures.inc({ slot, model, what });
      log.warn({ slot, model, what, reason }, "engine did not carry out an operation");
    },
    engineWindow(slot, model, windowTokens, promisedTokens) {
      const missingTokens = Math.max(0, promisedTokens - windowTokens);
      metrics.engineWindowMissing.set({ slot, model }, missingTokens);
      if (missingTokens > 0)
        log.warn(
          { slot, model, windowTokens, promisedTokens },
          "the context of the engine is shorter than the catalogue's",
        );
    },
    engineSaid(slot, model, lastLines) {
      failures.said(slot, lastLines);
      log.error({ slot, model, lastLines }, "last output lines of the engine");
    },
    sleeperExited(slot, model, { reason, output }) {
      failures.failed(slot, model, "exit", reason);
      restarts.lost(slot, model, "exit");
      metrics.engineFailures.inc({ slot, model, what: "exit" });
      log.warn({ slot, model, reason, output }, "engine ended in its sleep");
    },
    engineNotAdopted(slot, model, reason) {
      log.warn({ slot, model, reason }, "engine of an earlier agent was not taken over");
    },
    sleeperEvicted: (slot, model) => log.info({ slot, model }, "sleeping engine stopped to make room"),
    memoryAwaited: (slot, model, missingBytes) => log.info({ slot, model, missingBytes }, "waiting for GPU memory"),
    memoryLate: (slot, model) => log.warn({ slot, model }, "GPU memory of a stopped engine is not free yet"),
    foreignGpuProcess(slot, pid, usedBytes) {
      metrics.foreignProcesses.inc({ slot });
      log.warn({ slot, pid, usedBytes }, "a GPU process that is not an engine of this node");
    },
    engineLogFailed: (error) => log.warn(describeError(error), "an engine's log could not be rotated"),
    handleUnreadable: (file, reason) =>
      log.warn({ file, reason }, "unreadable engine handle is ignored and stays on disk"),
  };
}
