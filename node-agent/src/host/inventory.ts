/**
 * Builds the inventory of the host from the library `systeminformation`, the kernel's list of PCI devices and
 * nvidia-smi. Pure. The library returns "", 0, -1 or a word of its own for unknown values. All of these become absent.
 */
import type { GpuModel } from "./gpu.ts";
import type { Disk, Gpu, Machine, MemoryModule, NetworkInterface } from "@weiche/shared/machine.ts";

/** The used members of the library's answers, by the name of its function. A function that failed has none. */
export interface LibraryAnswers {
  readonly system?: { readonly manufacturer: string; readonly model: string; readonly virtualHost?: string };
  readonly cpu?: {
    readonly manufacturer: string;
    readonly brand: string;
    readonly processors: number;
    readonly physicalCores: number;
    readonly cores: number;
  };
  readonly osInfo?: { readonly distro: string; readonly release: string; readonly kernel: string };
  readonly memLayout?: readonly { readonly size: number; readonly type: string; readonly clockSpeed: number | null }[];
  readonly blockDevices?: readonly LibraryDisk[];
  readonly networkInterfaces?: readonly LibraryInterface[];
  readonly graphics?: { readonly controllers: readonly LibraryGpu[] };
}

interface LibraryDisk {
  readonly name: string;
  readonly type: string;
  readonly size: number;
  readonly physical: string;
  readonly model: string;
}

interface LibraryInterface {
  readonly iface: string;
  readonly internal: boolean;
  readonly virtual: boolean;
  readonly operstate: string;
  readonly speed: number | null;
  readonly mtu: number | null;
}

interface LibraryGpu {
  readonly vendor: string;
  readonly model: string;
  readonly busAddress?: string;
}

/** Returns the inventory. `gpus`: as the kernel lists them. `models`: NVIDIA GPUs, as nvidia-smi names them. */
export function toMachine(answers: LibraryAnswers, gpus: readonly Gpu[], models: readonly GpuModel[]): Machine {
  const { system, cpu, osInfo } = answers;
  const os = osInfo && [osInfo.distro, osInfo.release].filter((word) => word !== "unknown");
  return {
    manufacturer: word(system?.manufacturer),
    model: word(system?.model, "Computer"),
    hypervisor: word(system?.virtualHost),
    processor: word([cpu?.manufacturer, cpu?.brand].filter(Boolean).join(" ")),
    processorSockets: positive(cpu?.processors),
    processorCores: positive(cpu?.physicalCores),
    processorThreads: positive(cpu?.cores),
    operatingSystem: word(os?.join(" ")),
    kernel: word(osInfo?.kernel),
    memoryModules: (answers.memLayout ?? []).flatMap(memoryModule),
    disks: (answers.blockDevices ?? []).flatMap(disk),
    networkInterfaces: (answers.networkInterfaces ?? []).flatMap(networkInterface),
    gpus: named(gpus, answers.graphics?.controllers ?? [], models),
  };
}

/** Without dmidecode, or the right to use it, the library invents one module without a type. */
function memoryModule({ size, type, clockSpeed }: NonNullable<LibraryAnswers["memLayout"]>[number]): MemoryModule[] {
  if (type === "" || type === "Empty" || !positive(size)) return [];
  return [{ sizeBytes: size, type: word(type, "Unknown"), megatransfers: positive(clockSpeed) }];
}

function disk({ name, type, size, physical, model }: LibraryDisk): Disk[] {
  if (type !== "disk" || !positive(size)) return [];
  return [{ name, sizeBytes: size, kind: word(physical), model: word(model) }];
}

function networkInterface({ iface, internal, virtual, operstate, speed, mtu }: LibraryInterface): NetworkInterface[] {
  if (internal || virtual) return [];
  const megabits = positive(speed);
  return [
    {
      name: iface,
      up: operstate === "up",
      bitsPerSecond: megabits === undefined ? undefined : megabits * 1e6,
      mtu: positive(mtu),
    },
  ];
}

/** Merges all facts about the same bus address. nvidia-smi may know a GPU even if the kernel's list cannot be read. */
function named(gpus: readonly Gpu[], controllers: readonly LibraryGpu[], models: readonly GpuModel[]): readonly Gpu[] {
  const unlisted = models
    .filter(({ busAddress }) => !gpus.some((gpu) => gpu.busAddress === busAddress))
    .map(({ busAddress }): Gpu => ({ busAddress, vendor: "NVIDIA" }));
  return [...gpus, ...unlisted]
    .map((gpu) => {
      // lspci leaves out the domain if all devices are in domain 0.
      const controller = controllers.find(({ busAddress }) => busAddress && gpu.busAddress.endsWith(busAddress));
      const model = models.find(({ busAddress }) => busAddress === gpu.busAddress);
      return { ...gpu, vendor: gpu.vendor ?? word(controller?.vendor), name: word(controller?.model), ...model };
    })
    .toSorted((a, b) => (a.busAddress < b.busAddress ? -1 : 1));
}

/** `nothing`: the library's word for an unknown value. */
function word(text: string | undefined, nothing = "-"): string | undefined {
  const trimmed = text?.trim();
  return trimmed === "" || trimmed === nothing ? undefined : trimmed;
}

function positive(value: number | null | undefined): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}
