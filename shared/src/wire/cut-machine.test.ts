import { expect, test } from "vitest";
import { cutMachine } from "./cut-machine.ts";

const part = { name: "x".repeat(1_000), sizeBytes: 2n ** 60n };

test("a machine report stays unchanged, except that long strings and lists are cut", () => {
  const machine = { kernel: "k".repeat(10_000), memoryModules: [], networkInterfaces: [], gpus: [] };
  const read = cutMachine({ ...machine, disks: Array<typeof part>(10_000).fill(part) });
  expect(read.kernel).toHaveLength(200);
  expect(read.disks).toHaveLength(256);
  expect(read.disks[0]).toEqual({ name: "x".repeat(200), sizeBytes: 2n ** 60n });
  const reading = { fileSystems: [], temperatures: [{ part: "cpu", celsius: 61.5 }], loadAverage1: 0 };
  expect(cutMachine(reading)).toEqual(reading);
});
