import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { VirtualClock } from "@weiche/shared/testing/virtual-clock.ts";
import { createGpuReader } from "./gpu.ts";

let directory: string;
const clock = new VirtualClock();

beforeEach(() => void (directory = temporaryDirectory()));

/** Writes a simulated nvidia-smi that records its runs. */
async function nvidiaSmi(script: string): Promise<string> {
  const program = join(directory, "nvidia-smi");
  await writeFile(program, `#!/bin/sh\necho "$1" >> "${directory}/runs"\n${script}\n`);
  await chmod(program, 0o755);
  return program;
}

const runs = async () => (await readFile(join(directory, "runs"), "utf8")).trim().split("\n").length;

test("readings are in bytes, shares, degrees and watts", async () => {
  const program = await nvidiaSmi('echo "0, GPU-1, 143771, 4, 143156, 37, 31, 76.61"');
  expect(await createGpuReader({ clock, program }).readGpus()).toEqual([
    {
      ...{ index: 0, uuid: "GPU-1", utilisation: 0.37, temperatureCelsius: 31, powerWatts: 76.61 },
      ...{ memoryTotalBytes: 143_771 * 2 ** 20, memoryUsedBytes: 4 * 2 ** 20, memoryFreeBytes: 143_156 * 2 ** 20 },
    },
  ]);
});

test("values that the GPU does not measure are absent, not 0", async () => {
  const program = await nvidiaSmi('echo "1, GPU-2, [N/A], [N/A], [Not Supported], [N/A], [Unknown Error], [N/A]"');
  expect(await createGpuReader({ clock, program }).readGpus()).toEqual([
    { index: 1, uuid: "GPU-2", memoryTotalBytes: undefined, utilisation: undefined, temperatureCelsius: undefined },
  ]);
});

test("a slowed GPU reports its reasons, except idleness and settings of its operator", async () => {
  const mask = "0x00000000000000E7"; // Idle, application clocks, power cap, both thermal reasons, power brake.
  const program = await nvidiaSmi(
    `printf "0, GPU-0, 1, 1, 1, 1, 1, 1, ${mask}\\n1, GPU-1, 1, 1, 1, 1, 1, 1, 0x0000000000000001\\n"`,
  );
  const reasons = ["sw_power_cap", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"];
  expect(await createGpuReader({ clock, program }).readGpus()).toMatchObject([
    { slowdowns: reasons },
    { slowdowns: [] },
  ]);
});

test.each([
  ["under its older name", "clocks_throttle_reasons.active", ["hw_slowdown"]],
  ["not at all", "nothing", undefined],
])(
  "a driver that knows the reasons of slowdowns %s is measured, and later queries use the driver's own field names",
  async (_, known, slowdowns) => {
    const program = await nvidiaSmi(`
    case "$1" in
    *,${known}) echo "0, GPU-0, 1, 1, 1, 1, 61, 1, 0x0000000000000008" ;;
    *reasons*) field="\${1##*,}"; echo "Field \\"$field\\" is not a valid field to query."; exit 2 ;;
    *) echo "0, GPU-0, 1, 1, 1, 1, 61, 1" ;;
    esac`);
    const reader = createGpuReader({ clock, program });
    const expected = [{ index: 0, temperatureCelsius: 61, slowdowns }];
    expect(await reader.readGpus()).toMatchObject(expected);
    const first = await runs();
    expect(await reader.readGpus()).toMatchObject(expected);
    expect(await runs()).toBe(first + 1);
  },
);

test("a GPU that does not report slowdowns has unknown reasons, not none", async () => {
  const program = await nvidiaSmi('echo "0, GPU-0, 1, 1, 1, 1, 1, 1, [N/A]"');
  expect((await createGpuReader({ clock, program }).readGpus())?.[0]).toHaveProperty("slowdowns", undefined);
});

test("processes on GPUs are listed with the memory that they hold", async () => {
  const program = await nvidiaSmi('printf "GPU-1, 4711, 512\\nGPU-1, 4712, [N/A]\\n"');
  expect(await createGpuReader({ clock, program }).readGpuProcesses()).toEqual([
    { gpuUuid: "GPU-1", pid: 4711, memoryUsedBytes: 512 * 2 ** 20 },
    { gpuUuid: "GPU-1", pid: 4712, memoryUsedBytes: undefined },
  ]);
});

test("a host without the program has no measurements, and is queried again only after a minute", async () => {
  const program = join(directory, "nvidia-smi");
  const reader = createGpuReader({ clock, program });
  expect(await reader.readGpus()).toBeUndefined();
  await nvidiaSmi("true");
  clock.advance(59_000);
  expect(await reader.readGpus()).toBeUndefined();
  clock.advance(1_001);
  expect(await reader.readGpus()).toEqual([]);
});

test("a program that fails returns no measurements", async () => {
  const program = await nvidiaSmi("echo 'Failed to initialize NVML'; exit 9");
  expect(await createGpuReader({ clock, program }).readGpus()).toBeUndefined();
});

test("concurrent callers share one run, and a reading is reused by callers that accept its age", async () => {
  const reader = createGpuReader({ clock, program: await nvidiaSmi("true") });
  await Promise.all([reader.readGpus(), reader.readGpus(1_000)]);
  expect(await runs()).toBe(1);
  clock.advance(900);
  await reader.readGpus(1_000);
  expect(await runs()).toBe(1);
  await reader.readGpus();
  expect(await runs()).toBe(2);
});
