/** The machine in the words of the protocol. A part that can no longer be read becomes an empty message. */
import type {
  Machine as WireMachine,
  MachineReading as WireReading,
} from "@weiche/proto/weiche/node/v1/node_control.ts";
import type { Machine, MachineReading } from "@weiche/shared/machine.ts";
import { optionalUint32, optionalUint64 } from "./whole-numbers.ts";

const noMachine: Machine = { memoryModules: [], disks: [], networkInterfaces: [], gpus: [] };
const noReading: MachineReading = { fileSystems: [], temperatures: [] };

export function machineLoad(machine: Machine = noMachine): WireMachine {
  return {
    ...machine,
    processorSockets: optionalUint32(machine.processorSockets),
    processorCores: optionalUint32(machine.processorCores),
    processorThreads: optionalUint32(machine.processorThreads),
    memoryModules: machine.memoryModules.map(({ sizeBytes, type, megatransfers }) => ({
      ...{ sizeBytes: bytes(sizeBytes), type, megatransfers: optionalUint32(megatransfers) },
    })),
    disks: machine.disks.map((disk) => ({ ...disk, sizeBytes: optionalUint64(disk.sizeBytes) })),
    networkInterfaces: machine.networkInterfaces.map(({ name, up, bitsPerSecond, mtu }) => ({
      ...{ name, up, bitsPerSecond: optionalUint64(bitsPerSecond), mtu: optionalUint32(mtu) },
    })),
    gpus: machine.gpus.map((gpu) => ({
      ...gpu,
      index: optionalUint32(gpu.index),
      memoryTotalBytes: optionalUint64(gpu.memoryTotalBytes),
    })),
  };
}

export function readingLoad(reading: MachineReading = noReading): WireReading {
  return {
    ...reading,
    swapTotalBytes: optionalUint64(reading.swapTotalBytes),
    swapUsedBytes: optionalUint64(reading.swapUsedBytes),
    fileSystems: reading.fileSystems.map(({ sizeBytes, availableBytes, inodes, inodesFree, ...named }) => ({
      ...named,
      sizeBytes: bytes(sizeBytes),
      availableBytes: bytes(availableBytes),
      inodes: optionalUint64(inodes),
      inodesFree: optionalUint64(inodesFree),
    })),
    cpuFrequencyLimitHertz: optionalUint64(reading.cpuFrequencyLimitHertz),
    cpuFrequencyMaxHertz: optionalUint64(reading.cpuFrequencyMaxHertz),
  };
}

function bytes(value: number): bigint {
  return optionalUint64(value)!;
}
