/** A GPU host as a machine: what it is made of, and how it does. What could not be read is absent, never 0. */

/** Read once, when the agent starts. */
export interface Machine {
  readonly manufacturer?: string;
  readonly model?: string;
  /** Set on a virtual machine, as far as it is known. */
  readonly hypervisor?: string;
  readonly processor?: string;
  readonly processorSockets?: number;
  readonly processorCores?: number;
  readonly processorThreads?: number;
  readonly operatingSystem?: string;
  readonly kernel?: string;
  readonly memoryModules: readonly MemoryModule[];
  readonly disks: readonly Disk[];
  readonly networkInterfaces: readonly NetworkInterface[];
  /** GPUs of any vendor, in the order of their bus addresses. */
  readonly gpus: readonly Gpu[];
}

export interface MemoryModule {
  readonly sizeBytes: number;
  /** Such as `DDR5`. */
  readonly type?: string;
  /** Millions of transfers per second. */
  readonly megatransfers?: number;
}

export interface Disk {
  readonly name: string;
  readonly sizeBytes?: number;
  /** Such as `SSD`. */
  readonly kind?: string;
  readonly model?: string;
}

export interface NetworkInterface {
  readonly name: string;
  readonly up: boolean;
  readonly bitsPerSecond?: number;
  /** Bytes. */
  readonly mtu?: number;
}

export interface Gpu {
  /** Its address on the PCI bus, such as `0000:3b:00.0`. */
  readonly busAddress: string;
  /** The number that nvidia-smi and `gpus` in agent.yaml use for it. */
  readonly index?: number;
  readonly vendor?: string;
  readonly name?: string;
  /** The kernel's driver, with its version where nvidia-smi tells it. */
  readonly driver?: string;
  readonly memoryTotalBytes?: number;
}

/** Read each 15 s. Use of processors and memory is measured more often and is not in it. */
export interface MachineReading {
  /** Programs that ran or waited for processor or disk, on average over 1, 5 and 15 minutes. */
  readonly loadAverage1?: number;
  readonly loadAverage5?: number;
  readonly loadAverage15?: number;
  readonly swapTotalBytes?: number;
  readonly swapUsedBytes?: number;
  /** The file systems that hold models, state or outbox. */
  readonly fileSystems: readonly FileSystem[];
  /** Over all disks, since the host started. */
  readonly diskReadBytes?: number;
  readonly diskWrittenBytes?: number;
  /** Since the reading before. */
  readonly diskReadBytesPerSecond?: number;
  readonly diskWrittenBytesPerSecond?: number;
  /** Over all network interfaces that lead out of the host, since it started. */
  readonly networkReceivedBytes?: number;
  readonly networkSentBytes?: number;
  /** Since the reading before. */
  readonly networkReceivedBytesPerSecond?: number;
  readonly networkSentBytesPerSecond?: number;
  readonly temperatures: readonly Temperature[];
  /** The most limited core of the processor: the frequency that it may run at now, and the one that it is made for. */
  readonly cpuFrequencyLimitHertz?: number;
  readonly cpuFrequencyMaxHertz?: number;
}

/** The kinds of files that the agent and its engines keep on a file system. */
export const holdings = ["models", "state", "outbox"] as const;
export type Holding = (typeof holdings)[number];

export interface FileSystem {
  /** Where it is mounted. */
  readonly mount: string;
  /** Some of `holdings`. */
  readonly holds: readonly string[];
  readonly sizeBytes: number;
  /** Bytes that an unprivileged program may still write. */
  readonly availableBytes: number;
  /** Absent on file systems without a fixed number of them. */
  readonly inodes?: number;
  readonly inodesFree?: number;
}

export const parts = ["cpu", "gpu", "memory", "disk", "network", "board"] as const;
export type Part = (typeof parts)[number];

export interface Temperature {
  /** One of `parts`. */
  readonly part: string;
  /** The value of the part's hottest sensor. */
  readonly celsius: number;
}
