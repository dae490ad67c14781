/** The metrics of host and GPUs, which are measured every 2 s: their declarations, and their latest values. */
import type { MetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import { slowdowns, type GpuReading } from "../host/gpu.ts";
import type { HostReading } from "../host/host.ts";

type HostMetrics = ReturnType<typeof createHostMetrics>;

export function createHostMetrics({ gauge }: MetricRegistry) {
  return {
    hostCpuUse: gauge(
      "weiche_agent_host_cpu_use_ratio",
      "CPU time in use over all cores of the host, 0 to 1",
      [],
      "near 1: the agent and its engines wait for cores",
    ),
    hostMemoryTotal: gauge("weiche_agent_host_memory_total_bytes", "Memory of the host"),
    hostMemoryAvailable: gauge(
      "weiche_agent_host_memory_available_bytes",
      "Memory that is still available to programs of the host, including caches",
      [],
      "below a twentieth of the total: the kernel may end an engine",
    ),
    gpuMemoryUsed: gauge("weiche_agent_gpu_memory_used_bytes", "GPU memory in use, by any program", ["gpu"]),
    gpuMemoryTotal: gauge("weiche_agent_gpu_memory_total_bytes", "Total GPU memory", ["gpu"]),
    gpuUtilisation: gauge("weiche_agent_gpu_utilisation_ratio", "GPU utilisation, 0 to 1", ["gpu"]),
    gpuTemperature: gauge("weiche_agent_gpu_temperature_celsius", "GPU temperature", ["gpu"], "above 85"),
    gpuPower: gauge("weiche_agent_gpu_power_watts", "GPU power draw", ["gpu"]),
    gpuSlowdown: gauge(
      "weiche_agent_gpu_slowdown",
      "1 while the GPU runs slower than it could for this reason, otherwise 0. The reasons are NVIDIA's words: `sw_power_cap` (its power limit, usual under load), `sw_thermal_slowdown`, `hw_thermal_slowdown` (too hot), `hw_power_brake_slowdown` (requested by the power supply), `hw_slowdown` (either of both, or too much power drawn). Absent if the driver does not report it",
      ["gpu", "reason"],
      "1 for minutes, for any reason except `sw_power_cap`",
    ),
  };
}

export function publishHost(metrics: HostMetrics, host: HostReading | undefined, gpus: readonly GpuReading[]): void {
  const { gpuMemoryUsed, gpuMemoryTotal, gpuUtilisation, gpuTemperature, gpuPower, gpuSlowdown } = metrics;
  // Removes series that are no longer measured.
  for (const gauge of [gpuMemoryUsed, gpuMemoryTotal, gpuUtilisation, gpuTemperature, gpuPower, gpuSlowdown])
    gauge.reset();
  const { cpuUse, memoryTotalBytes, memoryAvailableBytes } = host ?? {};
  if (cpuUse !== undefined) metrics.hostCpuUse.set(cpuUse);
  if (memoryTotalBytes !== undefined) metrics.hostMemoryTotal.set(memoryTotalBytes);
  if (memoryAvailableBytes !== undefined) metrics.hostMemoryAvailable.set(memoryAvailableBytes);
  for (const gpu of gpus) publishGpu(metrics, gpu);
}

function publishGpu(metrics: HostMetrics, gpu: GpuReading): void {
  const labels = { gpu: String(gpu.index) };
  if (gpu.memoryUsedBytes !== undefined) metrics.gpuMemoryUsed.set(labels, gpu.memoryUsedBytes);
  if (gpu.memoryTotalBytes !== undefined) metrics.gpuMemoryTotal.set(labels, gpu.memoryTotalBytes);
  if (gpu.utilisation !== undefined) metrics.gpuUtilisation.set(labels, gpu.utilisation);
  if (gpu.temperatureCelsius !== undefined) metrics.gpuTemperature.set(labels, gpu.temperatureCelsius);
  if (gpu.powerWatts !== undefined) metrics.gpuPower.set(labels, gpu.powerWatts);
  if (!gpu.slowdowns) return;
  for (const reason of slowdowns)
    metrics.gpuSlowdown.set({ ...labels, reason }, gpu.slowdowns.includes(reason) ? 1 : 0);
}
