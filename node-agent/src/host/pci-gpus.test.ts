import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { readPciGpus } from "./pci-gpus.ts";

let sys: string;
beforeEach(() => void (sys = temporaryDirectory()));

function device(busAddress: string, files: Readonly<Record<string, string>>, driver?: string): void {
  const at = join(sys, "bus/pci/devices", busAddress);
  mkdirSync(at, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(at, file), `${text}\n`);
  if (driver !== undefined) symlinkSync(`../../../../bus/pci/drivers/${driver}`, join(at, "driver"));
}

test("GPUs of any vendor are listed in the order of their bus addresses, with the kernel's facts about them", () => {
  device("0000:c3:00.0", { class: "0x120000", vendor: "0x1002", mem_info_vram_total: "206141652992" }, "amdgpu");
  device("0000:3b:00.0", { class: "0x030200", vendor: "0x10de" }, "nvidia");
  device("0000:03:00.0", { class: "0x030000", vendor: "0x1a03" });
  device("0000:00:1f.0", { class: "0x060100", vendor: "0x8086" }, "lpc_ich");
  device("0000:d0:00.0", { class: "0x038000", vendor: "0x4321", mem_info_vram_total: "0" });
  expect(readPciGpus(sys)).toEqual([
    { busAddress: "0000:03:00.0", vendor: "ASPEED" },
    { busAddress: "0000:3b:00.0", vendor: "NVIDIA", driver: "nvidia" },
    { busAddress: "0000:c3:00.0", vendor: "AMD", driver: "amdgpu", memoryTotalBytes: 206_141_652_992 },
    { busAddress: "0000:d0:00.0" },
  ]);
});

test("a host without a PCI bus has none", () => {
  expect(readPciGpus(sys)).toEqual([]);
});
