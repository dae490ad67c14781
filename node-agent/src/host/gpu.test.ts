import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createGpuReader } from "./gpu.ts";

let directory: string;
const clock = new VirtualClock();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "weiche-gpu-"));
});
afterEach(() => rm(directory, { recursive: true }));

/** A fake nvidia-smi that records each of its runs. */
async function nvidiaSmi(script: string): Promise<string> {
  const program = join(directory, "nvidia-smi");
  await writeFile(program, `#!/bin/sh\necho "$1" >> "${directory}/runs"\n${script}\n`);
  await chmod(program, 0o755);
  return program;
}

const runs = async () => (await readFile(join(directory, "runs"), "utf8")).trim().split("\n").length;

test("readings are bytes, shares, degrees and watts", async () => {
  const program = await nvidiaSmi('echo "0, GPU-1, 143771, 4, 143156, 37, 31, 76.61"');
  expect(await createGpuReader({ clock, program }).readGpus()).toEqual([
    {
      ...{ index: 0, uuid: "GPU-1", utilisation: 0.37, temperatureCelsius: 31, powerWatts: 76.61 },
      ...{ memoryTotalBytes: 143_771 * 2 ** 20, memoryUsedBytes: 4 * 2 ** 20, memoryFreeBytes: 143_156 * 2 ** 20 },
    },
  ]);
});

test("what the GPU does not measure is absent, not 0", async () => {
  const program = await nvidiaSmi('echo "1, GPU-2, [N/A], [N/A], [Not Supported], [N/A], [Unknown Error], [N/A]"');
  expect(await createGpuReader({ clock, program }).readGpus()).toEqual([
    { index: 1, uuid: "GPU-2", memoryTotalBytes: undefined, utilisation: undefined, temperatureCelsius: undefined },
  ]);
});

test("processes on GPUs are told with what they hold", async () => {
  const program = await nvidiaSmi('printf "GPU-1, 4711, 512\\nGPU-1, 4712, [N/A]\\n"');
  expect(await createGpuReader({ clock, program }).readGpuProcesses()).toEqual([
    { gpuUuid: "GPU-1", pid: 4711, memoryUsedBytes: 512 * 2 ** 20 },
    { gpuUuid: "GPU-1", pid: 4712, memoryUsedBytes: undefined },
  ]);
});

test("a host without the program has no measurements, and is asked again only after a minute", async () => {
  const program = join(directory, "nvidia-smi");
  const reader = createGpuReader({ clock, program });
  expect(await reader.readGpus()).toBeUndefined();
  await nvidiaSmi("true");
  clock.advance(59_000);
  expect(await reader.readGpus()).toBeUndefined();
  clock.advance(1_001);
  expect(await reader.readGpus()).toEqual([]);
});

test("a program that fails gives no measurements", async () => {
  const program = await nvidiaSmi("echo 'Failed to initialize NVML'; exit 9");
  expect(await createGpuReader({ clock, program }).readGpus()).toBeUndefined();
});

test("those who ask together share one run, and a reading serves those who are content with its age", async () => {
  const reader = createGpuReader({ clock, program: await nvidiaSmi("true") });
  await Promise.all([reader.readGpus(), reader.readGpus(1_000)]);
  expect(await runs()).toBe(1);
  clock.advance(900);
  await reader.readGpus(1_000);
  expect(await runs()).toBe(1);
  await reader.readGpus();
  expect(await runs()).toBe(2);
});
