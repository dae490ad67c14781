/** The metrics of the machine: their declarations, and their latest values. */
import type { Counter, Gauge } from "prom-client";
import type { FileSystem, MachineReading } from "@weiche/shared/machine.ts";
import type { MetricRegistry } from "@weiche/shared/program/metric-registry.ts";

type MachineMetrics = ReturnType<typeof createMachineMetrics>;

export function createMachineMetrics(registry: MetricRegistry) {
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = [], worry?: string) =>
    registry.gauge(`weiche_agent_host_${name}`, help, labelNames, worry);
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = [], worry?: string) =>
    registry.counter(`weiche_agent_host_${name}`, help, labelNames, worry);
  const ofFileSystem = (name: string, help: string, worry?: string) =>
    gauge(`filesystem_${name}`, help, ["mount", "holds"], worry);
  return {
    loadAverage: gauge(
      "load_average",
      "Programs that ran or waited, averaged over `1`, `5` and `15` minutes",
      ["minutes"],
      "above twice the number of cores",
    ),
    swapTotal: gauge("swap_total_bytes", "Swap of the host"),
    swapUsed: gauge("swap_used_bytes", "Swap of the host in use", [], "it grows: memory is short"),
    fileSystemSize: ofFileSystem(
      "size_bytes",
      "Size of a file system with files of the agent or its engines: `models`, `state`, `outbox`, or several of them, such as `models+state`. A model counts if its engine's command contains its path",
    ),
    fileSystemAvailable: ofFileSystem(
      "available_bytes",
      "Bytes that programs may still write to that file system",
      "below a twentieth of its size",
    ),
    fileSystemInodes: ofFileSystem("inodes", "Maximum number of files on that file system. Absent if it is not fixed"),
    fileSystemInodesFree: ofFileSystem(
      "inodes_free",
      "Number of files that may still be created there",
      "below a twentieth of the maximum",
    ),
    diskRead: counter("disk_read_bytes_total", "Bytes read from all disks since the host started"),
    diskWritten: counter("disk_written_bytes_total", "Bytes written to all disks since the host started"),
    networkReceived: counter(
      "network_received_bytes_total",
      "Bytes received over all interfaces that lead out of the host, since the host started",
    ),
    networkSent: counter("network_sent_bytes_total", "Bytes sent over these interfaces since the host started"),
    temperature: gauge(
      "temperature_celsius",
      "The hottest sensor of `cpu`, `gpu`, `memory`, `disk`, `network`, `board`. NVIDIA GPUs have their own metric",
      ["part"],
      "above 90",
    ),
    frequencyLimit: gauge(
      "cpu_frequency_limit_hertz",
      "The current frequency limit of the most limited core",
      [],
      "far below `weiche_agent_host_cpu_frequency_max_hertz`: the host is too hot, or saves power",
    ),
    frequencyMax: gauge("cpu_frequency_max_hertz", "The maximum frequency of that core"),
    threadsLost: counter(
      "measurement_threads_lost_total",
      "Measuring threads that died or hung: `reading` (restarted after 15 s), `inventory` (after 10 min). Until then their measurements are absent, and everything else works",
      ["thread"],
      "it rises repeatedly",
    ),
  };
}

/** Sets the metrics. Without a reading all series are removed, so that none shows an old value. */
export function publishMachine(metrics: MachineMetrics, reading: MachineReading | undefined): void {
  for (const metric of Object.values<Gauge | Counter>(metrics)) {
    if (metric === metrics.threadsLost) continue; // The agent counts it itself.
    metric.reset();
    metric.remove({}); // A reset sets a metric without labels to 0.
  }
  if (!reading) return;
  set(metrics.swapTotal, reading.swapTotalBytes);
  set(metrics.swapUsed, reading.swapUsedBytes);
  set(metrics.frequencyLimit, reading.cpuFrequencyLimitHertz);
  set(metrics.frequencyMax, reading.cpuFrequencyMaxHertz);
  count(metrics.diskRead, reading.diskReadBytes);
  count(metrics.diskWritten, reading.diskWrittenBytes);
  count(metrics.networkReceived, reading.networkReceivedBytes);
  count(metrics.networkSent, reading.networkSentBytes);
  const { loadAverage1, loadAverage5, loadAverage15 } = reading;
  for (const [minutes, load] of Object.entries({ 1: loadAverage1, 5: loadAverage5, 15: loadAverage15 }))
    if (load !== undefined) metrics.loadAverage.set({ minutes }, load);
  for (const { part, celsius } of reading.temperatures) metrics.temperature.set({ part }, celsius);
  for (const fileSystem of reading.fileSystems) publishFileSystem(metrics, fileSystem);
}

function publishFileSystem(metrics: MachineMetrics, { mount, holds, ...read }: FileSystem): void {
  const labels = { mount, holds: holds.join("+") };
  metrics.fileSystemSize.set(labels, read.sizeBytes);
  metrics.fileSystemAvailable.set(labels, read.availableBytes);
  if (read.inodes !== undefined) metrics.fileSystemInodes.set(labels, read.inodes);
  if (read.inodesFree !== undefined) metrics.fileSystemInodesFree.set(labels, read.inodesFree);
}

function set(gauge: Gauge, value: number | undefined): void {
  if (value !== undefined) gauge.set(value);
}

/** Sets a counter to the kernel's total. Its previous value has been removed. */
function count(counter: Counter, total: number | undefined): void {
  if (total !== undefined) counter.inc(total);
}
