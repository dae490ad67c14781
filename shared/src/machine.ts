/** A GPU host's hardware and its readings. Values that could not be read are undefined, not 0. */

/** The hardware, read once when the agent starts. */
export interface Machine {
  readonly manufacturer?: string;
  readonly model?: string;
  /** The hypervisor of a virtual machine, if known. */
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
  /** The GPU's number in nvidia-smi and in `gpus` of agent.yaml. */
  readonly index?: number;
  readonly vendor?: string;
  readonly name?: string;
  /** The kernel's driver, with its version if nvidia-smi reports it. */
  readonly driver?: string;
  readonly memoryTotalBytes?: number;
}

/**
 * Readings taken every 15 s. The load of processors and memory is not among them, because it is measured more often.
 */
export interface MachineReading {
  /** Number of programs that ran or waited for processor or disk, on average over 1, 5 and 15 minutes. */
  readonly loadAverage1?: number;
  readonly loadAverage5?: number;
  readonly loadAverage15?: number;
  readonly swapTotalBytes?: number;
  readonly swapUsedBytes?: number;
  /** The file systems that hold models, state or outbox. */
  readonly fileSystems: readonly FileSystem[];
  /** Sums of all disks since the host started. */
  readonly diskReadBytes?: number;
  readonly diskWrittenBytes?: number;
  /** Rates since the previous reading. */
  readonly diskReadBytesPerSecond?: number;
  readonly diskWrittenBytesPerSecond?: number;
  /** Sums of all network interfaces that lead out of the host, since the host started. */
  readonly networkReceivedBytes?: number;
  readonly networkSentBytes?: number;
  /** Rates since the previous reading. */
  readonly networkReceivedBytesPerSecond?: number;
  readonly networkSentBytesPerSecond?: number;
  readonly temperatures: readonly Temperature[];
  /** The most limited core: its highest frequency now, and its highest rated frequency. */
  readonly cpuFrequencyLimitHertz?: number;
  readonly cpuFrequencyMaxHertz?: number;
}

/** The kinds of files that the agent and its engines keep on a file system. */
export const holdings = ["models", "state", "outbox"] as const;
export type Holding = (typeof holdings)[number];

/** A file system and its free space. */
export interface MeasuredFileSystem {
  /** The path where it is mounted. */
  readonly mount: string;
  readonly sizeBytes: number;
  /** Bytes that an unprivileged program can still write. */
  readonly availableBytes: number;
  /** Undefined on file systems without a fixed number of inodes. */
  readonly inodes?: number;
  readonly inodesFree?: number;
}

export interface FileSystem extends MeasuredFileSystem {
  /** Some of `holdings`. */
  readonly holds: readonly string[];
}

export const parts = ["cpu", "gpu", "memory", "disk", "network", "board"] as const;
export type Part = (typeof parts)[number];

export interface Temperature {
  /** One of `parts`. */
  readonly part: string;
  /** The temperature of the part's hottest sensor. */
  readonly celsius: number;
}
