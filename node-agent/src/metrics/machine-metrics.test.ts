import { createMetricRegistry } from "@weiche/shared/program/metric-registry.ts";
import { expect, test } from "vitest";
import { createMachineMetrics, publishMachine } from "./machine-metrics.ts";

const metricRegistry = createMetricRegistry();
const { registry } = metricRegistry;
const metrics = createMachineMetrics(metricRegistry);

async function samples(): Promise<string[]> {
  const lines = (await registry.metrics()).split("\n");
  return lines
    .filter((line) => line.startsWith("weiche_agent_host_"))
    .map((line) => line.slice("weiche_agent_host_".length));
}

test("without a reading there is no series, not even with 0", async () => {
  publishMachine(metrics, undefined);
  expect(await samples()).toEqual([]);
});

test("the last reading is shown, and removed when readings end", async () => {
  const fileSystem = { mount: "/models", holds: ["models", "state"], sizeBytes: 100, availableBytes: 7 };
  const temperatures = [{ part: "cpu", celsius: 61.5 }];
  const reading = { loadAverage1: 0, swapTotalBytes: 0, diskReadBytes: 1_000, networkSentBytes: 0 };
  for (const diskReadBytes of [500, 1_000])
    publishMachine(metrics, { ...reading, diskReadBytes, fileSystems: [fileSystem], temperatures });
  expect(await samples()).toEqual([
    'load_average{minutes="1"} 0',
    "swap_total_bytes 0",
    'filesystem_size_bytes{mount="/models",holds="models+state"} 100',
    'filesystem_available_bytes{mount="/models",holds="models+state"} 7',
    "disk_read_bytes_total 1000",
    "network_sent_bytes_total 0",
    'temperature_celsius{part="cpu"} 61.5',
  ]);
  publishMachine(metrics, {
    cpuFrequencyLimitHertz: 2e9,
    cpuFrequencyMaxHertz: 4e9,
    fileSystems: [],
    temperatures: [],
  });
  expect(await samples()).toEqual(["cpu_frequency_limit_hertz 2000000000", "cpu_frequency_max_hertz 4000000000"]);
});
