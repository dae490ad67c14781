import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { toMachine, type LibraryAnswers } from "./inventory.ts";

/** The library's answers on a virtual machine without dmidecode, lspci and GPUs. */
const recorded = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../test/recordings/systeminformation-vm.json"), "utf8"),
) as LibraryAnswers;

const nothing = { memoryModules: [], disks: [], networkInterfaces: [], gpus: [] };

test("of a virtual machine contains its own facts, and nothing that the library invents", () => {
  expect(toMachine(recorded, [], [])).toEqual({
    ...nothing,
    ...{ model: "Docker Container", hypervisor: "KVM", processor: "Intel Xeon® Processor" },
    ...{ processorSockets: 1, processorCores: 2, processorThreads: 2 },
    ...{ operatingSystem: "Debian GNU/Linux 12", kernel: "6.18.44-fc-v657" },
    disks: [{ name: "vda", sizeBytes: 274_877_906_944, kind: "HDD" }],
    networkInterfaces: [{ name: "eth0", up: true, mtu: 1400 }],
  });
});

test("of a host that refuses all queries is empty", () => {
  const unknown = { ...recorded.system!, manufacturer: "", model: "Computer" };
  const { virtualHost: _, ...system } = unknown;
  const osInfo = { distro: "unknown", release: "unknown", kernel: "" };
  const cpu = { manufacturer: "", brand: "", processors: 0, physicalCores: NaN, cores: 0 };
  const machine = toMachine({ system, osInfo, cpu }, [], []);
  expect(machine).toEqual(nothing);
  expect(JSON.parse(JSON.stringify(toMachine({}, [], [])))).toEqual(nothing);
});

test("lists memory by module, without empty slots", () => {
  const module = { size: 68_719_476_736, type: "DDR5", clockSpeed: 4800 };
  const memLayout = [
    module,
    { size: 0, type: "Empty", clockSpeed: 0 },
    { ...module, type: "Unknown", clockSpeed: null },
  ];
  expect(toMachine({ memLayout }, [], []).memoryModules).toEqual([
    { sizeBytes: 68_719_476_736, type: "DDR5", megatransfers: 4800 },
    { sizeBytes: 68_719_476_736 },
  ]);
});

test("lists whole disks, and interfaces that lead out of the host", () => {
  const disk = { name: "nvme0n1", type: "disk", size: 3.8e12, physical: "SSD", model: "MZQL23T8" };
  const device = { iface: "eth0", internal: false, virtual: false, operstate: "up", speed: 25_000, mtu: 9_000 };
  const machine = toMachine(
    {
      blockDevices: [disk, { ...disk, name: "nvme0n1p1", type: "part" }, { ...disk, name: "zram0", size: 0 }],
      networkInterfaces: [
        { ...device, iface: "lo", internal: true },
        { ...device, iface: "docker0", virtual: true },
        device,
        { ...device, iface: "eth1", operstate: "down", speed: -1 },
      ],
    },
    [],
    [],
  );
  expect(machine.disks).toEqual([{ name: "nvme0n1", sizeBytes: 3.8e12, kind: "SSD", model: "MZQL23T8" }]);
  expect(machine.networkInterfaces).toEqual([
    { name: "eth0", up: true, bitsPerSecond: 25e9, mtu: 9_000 },
    { name: "eth1", up: false, mtu: 9_000 },
  ]);
});

test("merges the facts of kernel, lspci and nvidia-smi about a GPU by its bus address", () => {
  const kernel = [
    { busAddress: "0000:03:00.0", vendor: "ASPEED", driver: "ast" },
    { busAddress: "0000:3b:00.0", vendor: "NVIDIA", driver: "nvidia" },
    { busAddress: "0000:c3:00.0", vendor: "AMD", driver: "amdgpu", memoryTotalBytes: 206_141_652_992 },
  ];
  const controllers = [
    { vendor: "NVIDIA Corporation", model: "GH100 [H100 SXM5 80GB]", busAddress: "3b:00.0" },
    {
      vendor: "Advanced Micro Devices, Inc. [AMD/ATI]",
      model: "Aqua Vanjaram [Instinct MI300X]",
      busAddress: "c3:00.0",
    },
    { vendor: "", model: "", busAddress: "" },
  ];
  const smi = { index: 0, name: "NVIDIA H100 80GB HBM3", driver: "nvidia 550.90.07", memoryTotalBytes: 85_520_809_984 };
  const { gpus } = toMachine({ graphics: { controllers } }, kernel, [{ ...smi, busAddress: "0000:3b:00.0" }]);
  expect(gpus).toEqual([
    kernel[0],
    { ...smi, busAddress: "0000:3b:00.0", vendor: "NVIDIA" },
    { ...kernel[2], name: "Aqua Vanjaram [Instinct MI300X]" },
  ]);
  expect(toMachine({}, [], [{ ...smi, busAddress: "0000:3b:00.0" }]).gpus).toEqual([
    { ...smi, busAddress: "0000:3b:00.0", vendor: "NVIDIA" },
  ]);
});
