/**
 * Reads the free space of the file systems with models, state and outbox. Blocks while a file system does not answer.
 */
import { statSync, statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { holdings, type FileSystem, type Holding, type MeasuredFileSystem } from "@weiche/shared/machine.ts";

/** A file or directory that the agent or its engines keep. */
export interface KeptPath {
  readonly path: string;
  readonly holds: Holding;
}

/** Returns each file system once, in the order of the paths. A path that does not exist is left out. */
export function readFileSystems(kept: readonly KeptPath[]): readonly FileSystem[] {
  const found = new Map<number, FileSystem>();
  for (const { path, holds } of kept) {
    const device = deviceOf(path);
    if (device === undefined) continue;
    const known = found.get(device);
    const fileSystem = known ?? measure(resolve(path), device);
    if (!fileSystem) continue;
    const all = holdings.filter((each) => each === holds || known?.holds.includes(each));
    found.set(device, { ...fileSystem, holds: all });
  }
  return [...found.values()];
}

function measure(path: string, device: number): MeasuredFileSystem | undefined {
  try {
    const { bsize, blocks, bavail, files, ffree } = statfsSync(path);
    return {
      mount: mountOf(path, device),
      sizeBytes: blocks * bsize,
      availableBytes: bavail * bsize,
      ...(files > 0 ? { inodes: files, inodesFree: ffree } : {}),
    };
  } catch {
    return undefined;
  }
}

/** Returns the topmost directory above the path on the same file system. */
function mountOf(path: string, device: number): string {
  const above = dirname(path);
  return above === path || deviceOf(above) !== device ? path : mountOf(above, device);
}

function deviceOf(path: string): number | undefined {
  try {
    return statSync(path).dev;
  } catch {
    return undefined;
  }
}
