/** The panels of GPUs and hosts. */
import { lines } from "./panels.ts";

const node = 'node=~"$node"';
const gpu = "{{node}} GPU {{gpu}}";
const noGpu = "no GPU is measured";
const noHost = "no node reports it";
const perNode = "{{node}}";

export const gpus = [
  lines(
    {
      title: "GPU memory",
      description: "Share of GPU memory in use by all programs.",
      unit: "percentunit",
      empty: noGpu,
      max: 1,
    },
    {
      expr: `weiche_agent_gpu_memory_used_bytes{${node}} / weiche_agent_gpu_memory_total_bytes{${node}}`,
      legend: gpu,
    },
  ),
  lines(
    {
      title: "GPU utilisation",
      description: "Share of time in which the GPU was busy.",
      unit: "percentunit",
      empty: noGpu,
      max: 1,
    },
    { expr: `weiche_agent_gpu_utilisation_ratio{${node}}`, legend: gpu },
  ),
  lines(
    { title: "GPU temperature", description: "Alert above 85 °C for five minutes.", unit: "celsius", empty: noGpu },
    { expr: `weiche_agent_gpu_temperature_celsius{${node}}`, legend: gpu },
  ),
  lines(
    {
      title: "GPU power",
      description: "Power draw of all GPUs, stacked.",
      unit: "watt",
      empty: noGpu,
      stacked: true,
      width: 12,
    },
    { expr: `weiche_agent_gpu_power_watts{${node}}`, legend: gpu },
  ),
  lines(
    {
      title: "GPU slowed down",
      description:
        "Share of the last ten minutes in which the GPU was slowed down, by NVIDIA's reason. `sw_power_cap` is usual under load. Alert if another reason exceeds a half.",
      unit: "percentunit",
      empty: "no GPU reports it",
      max: 1,
      width: 12,
    },
    { expr: `instance_node_gpu_reason:weiche_agent_gpu_slowdown:avg10m{${node}}`, legend: `${gpu} {{reason}}` },
  ),
];

export const hosts = [
  lines(
    {
      title: "Processors",
      description: "Share of time in use, over all cores.",
      unit: "percentunit",
      empty: noHost,
      max: 1,
    },
    { expr: `weiche_agent_host_cpu_use_ratio{${node}}`, legend: perNode },
  ),
  lines(
    {
      title: "Load",
      description: "Programs that ran or waited, on average over five minutes.",
      unit: "short",
      empty: noHost,
    },
    { expr: `weiche_agent_host_load_average{${node}, minutes="5"}`, legend: perNode },
  ),
  lines(
    {
      title: "Memory left",
      description: "Memory that programs can still get, including caches. Alert below 5 %.",
      unit: "percentunit",
      empty: noHost,
      max: 1,
    },
    { expr: `instance_node:weiche_agent_host_memory_available_per_total:ratio{${node}}`, legend: perNode },
  ),
  lines(
    { title: "Swap", description: "Swap in use. If it grows, memory is short.", unit: "bytes", empty: noHost },
    { expr: `weiche_agent_host_swap_used_bytes{${node}}`, legend: perNode },
  ),
  lines(
    {
      title: "File systems: bytes left",
      description: "Free share of file systems with models, state or the outbox. Alert below 5 %.",
      unit: "percentunit",
      empty: noHost,
      max: 1,
    },
    {
      expr: `instance_node_mount_holds:weiche_agent_host_filesystem_available_per_size:ratio{${node}}`,
      legend: "{{node}} {{mount}} ({{holds}})",
    },
  ),
  lines(
    {
      title: "File systems: files left",
      description: "Free share of inodes. Alert below 5 %.",
      unit: "percentunit",
      empty: "no file system reports it",
      max: 1,
    },
    {
      expr: `instance_node_mount_holds:weiche_agent_host_filesystem_inodes_free_per_inodes:ratio{${node}}`,
      legend: "{{node}} {{mount}} ({{holds}})",
    },
  ),
  lines(
    { title: "Disks", description: "Bytes read from and written to all disks.", unit: "Bps", empty: noHost },
    { expr: `rate(weiche_agent_host_disk_read_bytes_total{${node}}[$__rate_interval])`, legend: "{{node}} read" },
    { expr: `rate(weiche_agent_host_disk_written_bytes_total{${node}}[$__rate_interval])`, legend: "{{node}} written" },
  ),
  lines(
    {
      title: "Network",
      description: "Bytes received and sent over all interfaces that lead out of the host.",
      unit: "Bps",
      empty: noHost,
    },
    {
      expr: `rate(weiche_agent_host_network_received_bytes_total{${node}}[$__rate_interval])`,
      legend: "{{node}} received",
    },
    { expr: `rate(weiche_agent_host_network_sent_bytes_total{${node}}[$__rate_interval])`, legend: "{{node}} sent" },
  ),
  lines(
    {
      title: "Temperatures",
      description: "The hottest sensor of each part of the host. Above 90 °C is too much.",
      unit: "celsius",
      empty: "no node has sensors",
    },
    { expr: `weiche_agent_host_temperature_celsius{${node}}`, legend: "{{node}} {{part}}" },
  ),
  lines(
    {
      title: "Limit of the processor's frequency",
      description:
        "Frequency limit of the most limited core, as a share of its maximum. Far below 1, the host is too hot or saves power.",
      unit: "percentunit",
      empty: noHost,
      max: 1,
    },
    {
      expr: `weiche_agent_host_cpu_frequency_limit_hertz{${node}} / weiche_agent_host_cpu_frequency_max_hertz{${node}}`,
      legend: perNode,
    },
  ),
];
