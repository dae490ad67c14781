/** What the node measures of itself and its engines, kept fresh for load reports, metrics and `weiche-agent status`. */
import { every, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineLife } from "./engines/engine-life.ts";
import type { DialectLifecycles, EngineMetrics } from "./engines/dialect-lifecycle.ts";
import type { Metrics } from "./metrics.ts";
import type { GpuReader, GpuReading } from "./host/gpu.ts";
import { HostReader, type HostReading } from "./host/host.ts";
import type { RouterState } from "./links/router-links.ts";
import type { AwakeEngine, SlotView } from "./slots/slot-view.ts";
import type { Outbox } from "./outbox/outbox.ts";

export interface TelemetryParts {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly gpuReader: GpuReader;
  readonly dialects: DialectLifecycles;
  readonly life: EngineLife;
  readonly outbox: Outbox;
  readonly slots: () => readonly SlotView[];
  readonly routers: () => readonly RouterState[];
  /** The awake engine of each slot. */
  readonly awake: () => readonly AwakeEngine[];
  /** Tells of processes on the slots' GPUs that are no engines of this node. */
  readonly lookForForeignProcesses: () => Promise<void>;
}

interface MeasuredEngine {
  readonly slot: SlotName;
  readonly model: ModelId;
  readonly metrics: EngineMetrics;
}

/** A faster scrape keeps llama-server from noticing clients that leave. */
const periodMs = 2_000;
const engineMsMax = 1_500;
const foreignPeriodMs = 30_000;

export class Telemetry implements Disposable {
  host: HostReading | undefined;
  gpus: readonly GpuReading[] | undefined;
  engines: ReadonlyMap<SlotName, EngineMetrics> = new Map();
  #measured: readonly MeasuredEngine[] = [];
  readonly #parts: TelemetryParts;
  readonly #hostReader = new HostReader();
  readonly #timers: readonly Timer[];

  constructor(parts: TelemetryParts) {
    this.#parts = parts;
    void this.#measure();
    this.#timers = [
      every(parts.clock, periodMs, () => this.#measure()),
      // What cannot be read now is looked for again.
      every(parts.clock, foreignPeriodMs, () => parts.lookForForeignProcesses().catch(() => {})),
    ];
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) timer.cancel();
  }

  async #measure(): Promise<void> {
    this.host = this.#hostReader.read();
    const [gpus, engines] = await Promise.all([this.#parts.gpuReader.readGpus(), this.#engines()]);
    this.gpus = gpus;
    this.engines = new Map(engines.map(({ slot, metrics }) => [slot, metrics]));
    this.#measured = engines;
  }

  async #engines(): Promise<readonly MeasuredEngine[]> {
    const measured: MeasuredEngine[] = [];
    await Promise.all(
      this.#parts.awake().map(async ({ slot, spec, endpoint }) => {
        const metrics = await this.#parts.dialects[spec.dialect]
          .metrics?.(endpoint, AbortSignal.timeout(engineMsMax))
          .catch(() => undefined);
        if (metrics) measured.push({ slot, model: spec.model, metrics });
        if (metrics?.work !== undefined) this.#parts.life.measured(endpoint, metrics.work);
      }),
    );
    return measured;
  }

  /** Sets the gauges to what is true now, and what is measured to the last measurement. Called for each scrape. */
  async publish(): Promise<void> {
    const { metrics, outbox, slots, routers } = this.#parts;
    const oldestMs = await outbox.oldestMs().catch(() => undefined);
    // What is no longer there, or no longer measured, has no value any more.
    for (const gauge of [metrics.routerLink, metrics.dataSessions, ...measuredGauges(metrics)]) gauge.reset();
    for (const { name: slot, running, waiting, sleepers } of slots()) {
      metrics.running.set({ slot }, running);
      metrics.waiting.set({ slot }, waiting);
      for (const { model, keptBytes } of sleepers)
        if (keptBytes !== undefined) metrics.sleeperMemory.set({ slot, model }, keptBytes);
    }
    for (const { address, state, dataSessions } of routers()) {
      metrics.routerLink.set({ router: address }, state === "connecting" ? 0 : 1);
      metrics.dataSessions.set({ router: address }, dataSessions);
    }
    metrics.outboxRecords.set(outbox.depth);
    metrics.outboxOldest.set((oldestMs ?? 0) / 1000);
    metrics.outboxAdmitting.set(outbox.admitting ? 1 : 0);
    for (const engine of this.#measured) publishEngine(metrics, engine);
    if (this.host) publishHost(metrics, this.host);
    for (const gpu of this.gpus ?? []) publishGpu(metrics, gpu);
  }
}

function measuredGauges(metrics: Metrics) {
  const { kvCacheUse, prefixCacheHits } = metrics;
  const { sleeperMemory, gpuMemoryUsed, gpuMemoryTotal, gpuUtilisation, gpuTemperature, gpuPower } = metrics;
  return [
    kvCacheUse,
    prefixCacheHits,
    sleeperMemory,
    gpuMemoryUsed,
    gpuMemoryTotal,
    gpuUtilisation,
    gpuTemperature,
    gpuPower,
  ];
}

function publishEngine(metrics: Metrics, { slot, model, metrics: measured }: MeasuredEngine): void {
  const { kvCacheUse, prefixCacheHitRate } = measured;
  if (kvCacheUse !== undefined) metrics.kvCacheUse.set({ slot, model }, kvCacheUse);
  if (prefixCacheHitRate !== undefined) metrics.prefixCacheHits.set({ slot, model }, prefixCacheHitRate);
}

function publishHost(metrics: Metrics, { cpuUse, memoryTotalBytes, memoryAvailableBytes }: HostReading): void {
  if (cpuUse !== undefined) metrics.hostCpuUse.set(cpuUse);
  if (memoryTotalBytes !== undefined) metrics.hostMemoryTotal.set(memoryTotalBytes);
  if (memoryAvailableBytes !== undefined) metrics.hostMemoryAvailable.set(memoryAvailableBytes);
}

function publishGpu(metrics: Metrics, gpu: GpuReading): void {
  const labels = { gpu: String(gpu.index) };
  if (gpu.memoryUsedBytes !== undefined) metrics.gpuMemoryUsed.set(labels, gpu.memoryUsedBytes);
  if (gpu.memoryTotalBytes !== undefined) metrics.gpuMemoryTotal.set(labels, gpu.memoryTotalBytes);
  if (gpu.utilisation !== undefined) metrics.gpuUtilisation.set(labels, gpu.utilisation);
  if (gpu.temperatureCelsius !== undefined) metrics.gpuTemperature.set(labels, gpu.temperatureCelsius);
  if (gpu.powerWatts !== undefined) metrics.gpuPower.set(labels, gpu.powerWatts);
}
