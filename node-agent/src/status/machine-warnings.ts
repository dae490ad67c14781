/** Warns of too little memory on GPUs that nvidia-smi does not list, and of too little disk space for models. */
import { dirname } from "node:path";
import type { Finding } from "@weiche/shared/files/config-file.ts";
import type { MeasuredFileSystem, Machine } from "@weiche/shared/machine.ts";
import { isNearlyFull } from "@weiche/shared/program/machine-text.ts";
import { modelPathsOf } from "../config/config.ts";
import type { RawAgent } from "../config/config-schema.ts";
import { nameOf } from "../config/engine-models.ts";

export interface MachineFacts {
  exists(path: string): boolean;
  /** Returns whether the path is an empty directory. */
  isEmpty(path: string): boolean;
  /** Returns the file system of an existing path, or undefined if it cannot be read. */
  fileSystem(path: string): MeasuredFileSystem | undefined;
  /** Undefined if nvidia-smi lists the GPUs, because its readings are used then. */
  readonly machine?: Machine;
}

export function* machineWarnings(config: RawAgent, baseDir: string, facts: MachineFacts): Iterable<Finding> {
  for (const [index, slot] of config.slots.entries()) {
    for (const [at, engine] of slot.engines.entries()) {
      const path: Finding[0] = ["slots", index, "engines", at];
      const tooLarge = gpuWarning(slot.gpus, engine.memoryBytes ?? 0, facts);
      if (tooLarge !== undefined) yield [[...path, "memoryBytes"], `model "${nameOf(engine)}": ${tooLarge}`];
      for (const model of modelPathsOf(engine, baseDir)) {
        const noRoom = roomWarning(model, facts);
        if (noRoom !== undefined) yield [[...path, "command"], `model "${nameOf(engine)}": ${noRoom}`];
      }
    }
  }
}

/** Uses a GPU's number as its position by bus address. Only vendors' programs number GPUs, usually in this order. */
function gpuWarning(numbers: readonly number[], memoryBytes: number, { machine }: MachineFacts): string | undefined {
  const gpus = machine?.gpus.filter(({ memoryTotalBytes }) => memoryTotalBytes !== undefined) ?? [];
  const named = numbers.map((number) => gpus[number]);
  if (named.length === 0 || named.some((gpu) => gpu === undefined)) return undefined;
  const totalBytes = named.reduce((sum, gpu) => sum + gpu!.memoryTotalBytes!, 0);
  if (memoryBytes <= totalBytes) return undefined;
  const which = named.map((gpu) => gpu!.name ?? gpu!.vendor ?? gpu!.busAddress).join(", ");
  return `memoryBytes is ${memoryBytes}, but the slot's GPUs, counted by bus address (${which}), have ${totalBytes}`;
}

function roomWarning(model: string, facts: MachineFacts): string | undefined {
  if (!facts.exists(model)) {
    const above = nearest(dirname(model), facts);
    return facts.isEmpty(above) ? `${above} is empty: is the file system of the models mounted?` : undefined;
  }
  const fileSystem = facts.fileSystem(model);
  if (!fileSystem || !isNearlyFull(fileSystem)) return undefined;
  const { mount, availableBytes, inodes, inodesFree } = fileSystem;
  const files = inodes === undefined ? "" : ` and ${inodesFree} of ${inodes} files`;
  return `the file system ${mount} of ${model} is nearly full: it has room for ${availableBytes} bytes${files}`;
}

function nearest(path: string, facts: MachineFacts): string {
  return facts.exists(path) || dirname(path) === path ? path : nearest(dirname(path), facts);
}
