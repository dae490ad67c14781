/** Sets the gauges: the metrics of the present state. */
import type { GpuReading } from "./host/gpu.ts";
import type { HostReading } from "./host/host.ts";
import type { MachineSource } from "./host/machine-telemetry.ts";
import type { RouterLinks } from "./links/router-links.ts";
import { publishMachine } from "./machine-metrics.ts";
import type { Metrics } from "./metrics.ts";
import type { Outbox } from "./outbox/outbox.ts";
import type { Slots } from "./slots/slots.ts";
import type { MeasuredEngine, Telemetry } from "./telemetry.ts";

export interface GaugedParts {
  readonly outbox: Pick<Outbox, "oldestMs" | "depth" | "admitting">;
  readonly slots: Pick<Slots, "views">;
  readonly links: Pick<RouterLinks, "states">;
  readonly telemetry: Pick<Telemetry, "host" | "gpus" | "measured">;
  readonly machine: Pick<MachineSource, "reading">;
}

export async function publishGauges(metrics: Metrics, parts: GaugedParts): Promise<void> {
  const { outbox, slots, links, telemetry, machine } = parts;
  const oldestMs = await outbox.oldestMs().catch(() => undefined);
  // Removes series of things that no longer exist or are no longer measured.
  for (const gauge of [metrics.routerLink, metrics.dataSessions, ...measuredGauges(metrics)]) gauge.reset();
  for (const { name: slot, running, waiting, sleepers } of slots.views()) {
    metrics.running.set({ slot }, running);
    metrics.waiting.set({ slot }, waiting);
    for (const { model, keptBytes } of sleepers)
      if (keptBytes !== undefined) metrics.sleeperMemory.set({ slot, model }, keptBytes);
  }
  for (const { address, state, dataSessions } of links.states()) {
    metrics.routerLink.set({ router: address }, state === "connecting" ? 0 : 1);
    metrics.dataSessions.set({ router: address }, dataSessions);
  }
  metrics.outboxRecords.set(outbox.depth);
  metrics.outboxOldest.set((oldestMs ?? 0) / 1000);
  metrics.outboxAdmitting.set(outbox.admitting ? 1 : 0);
  for (const engine of telemetry.measured) publishEngine(metrics, engine);
  if (telemetry.host) publishHost(metrics, telemetry.host);
  for (const gpu of telemetry.gpus ?? []) publishGpu(metrics, gpu);
  publishMachine(metrics.machine, machine.reading);
}

function measuredGauges({ kvCacheUse, prefixCacheHits, sleeperMemory, ...rest }: Metrics) {
  const { gpuMemoryUsed, gpuMemoryTotal, gpuUtilisation, gpuTemperature, gpuPower } = rest;
  const ofGpus = [gpuMemoryUsed, gpuMemoryTotal, gpuUtilisation, gpuTemperature, gpuPower];
  return [kvCacheUse, prefixCacheHits, sleeperMemory, ...ofGpus];
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
