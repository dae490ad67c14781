/** Lists the GPUs of any vendor that the kernel sees on the PCI bus, without a vendor's program. */
import { readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import type { Gpu } from "@weiche/shared/machine.ts";
import { kernelNames, kernelText } from "./kernel-files.ts";

/** Base class and subclass: display controllers, and processing accelerators such as AMD's MI300. */
const gpuClass = /^0x(03|1200)/;

/** From the PCI ID repository, https://pci-ids.ucw.cz. The last two vendors make the small displays of servers. */
const vendors: Readonly<Record<string, string>> = {
  "0x10de": "NVIDIA",
  "0x1002": "AMD",
  "0x8086": "Intel",
  "0x1da3": "Habana Labs",
  "0x1a03": "ASPEED",
  "0x102b": "Matrox",
};

/** `sys`: where the kernel's files are. */
export function readPciGpus(sys = "/sys"): readonly Gpu[] {
  const devices = join(sys, "bus/pci/devices");
  return kernelNames(devices)
    .map((busAddress) => ({ busAddress, at: join(devices, busAddress) }))
    .filter(({ at }) => gpuClass.test(kernelText(at, "class")))
    .map(({ busAddress, at }) => ({
      busAddress,
      vendor: vendors[kernelText(at, "vendor")],
      driver: driverOf(at),
      memoryTotalBytes: amdMemory(at),
    }));
}

/** The driver amdgpu reports the memory. The sizes of a device's bus regions do not show it. */
function amdMemory(at: string): number | undefined {
  const bytes = Number(kernelText(at, "mem_info_vram_total"));
  return Number.isFinite(bytes) && bytes > 0 ? bytes : undefined;
}

function driverOf(at: string): string | undefined {
  try {
    return basename(readlinkSync(join(at, "driver")));
  } catch {
    return undefined;
  }
}
