/**
 * Reads the state of a machine with the library alone, as it would be without our own reader. Each call runs some
 * programs.
 */
import { createRequire } from "node:module";

type Library = Readonly<Record<string, () => Promise<unknown>>>;

const names = ["currentLoad", "mem", "fsSize", "fsStats", "networkStats", "cpuTemperature"];

export async function readWithLibrary(): Promise<void> {
  const library = createRequire(import.meta.resolve("@weiche/node-agent/package.json"))("systeminformation") as Library;
  await Promise.all(names.map((name) => library[name]!()));
}
