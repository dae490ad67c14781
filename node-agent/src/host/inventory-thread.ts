/**
 * The thread that takes the inventory of the host once, and ends. The library `systeminformation` runs programs and
 * waits for them without a time limit. Here each program gets a limit. The thread and its programs get only PATH of the
 * agent's environment.
 */
import childProcess from "node:child_process";
import { createRequire } from "node:module";
import { networkInterfaces } from "node:os";
import { parentPort } from "node:worker_threads";
import { readGpuModels } from "./gpu.ts";
import { toMachine, type LibraryAnswers } from "./inventory.ts";
import { readPciGpus } from "./pci-gpus.ts";
import { yieldToOthers } from "@weiche/shared/program/thread-priority.ts";

type Library = { readonly [Name in keyof LibraryAnswers]-?: () => Promise<LibraryAnswers[Name]> };
type Run = (...args: readonly unknown[]) => unknown;

const programMsMax = 5_000;
/** The library runs a shell with about thirty programs for each interface that has an address. */
const interfacesMax = 32;

yieldToOthers();
limitPrograms();
const library = createRequire(import.meta.url)("systeminformation") as Library;
parentPort?.once("message", () => {
  void takeStock().then((machine) => {
    parentPort?.postMessage(machine);
    parentPort?.close();
  });
});

async function takeStock() {
  // The queries run one after another. On a host with few cores they would otherwise slow an agent that has just
  // started.
  const answers: LibraryAnswers = {
    system: await known(library.system()),
    cpu: await known(library.cpu()),
    osInfo: await known(library.osInfo()),
    memLayout: await known(library.memLayout()),
    blockDevices: await known(library.blockDevices()),
    networkInterfaces: interfaces() <= interfacesMax ? await known(library.networkInterfaces()) : undefined,
    graphics: await known(library.graphics()),
  };
  return toMachine(answers, readPciGpus(), await readGpuModels().catch(() => []));
}

function known<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  return answer.catch(() => undefined);
}

function interfaces(): number {
  return Object.keys(networkInterfaces()).length;
}

/** These programs ask about displays. clinfo opens the GPUs for it, while engines may be measuring free memory. */
const refused = /^(clinfo|xdpyinfo|xrandr)\b/;

/**
 * Replaces the functions that the library takes from `node:child_process` in this thread. nvidia-smi is refused,
 * because it can hang forever and the library's wait cannot be ended. `readGpuModels` runs it instead.
 */
function limitPrograms(): void {
  const { exec, execSync, execFileSync } = childProcess as unknown as Record<string, Run>;
  const limit = { timeout: programMsMax, killSignal: "SIGKILL" };
  Object.assign(childProcess, {
    exec: (command: string, ...rest: readonly unknown[]) => {
      const callback = rest.at(-1) as (error: Error, stdout: string, stderr: string) => void;
      if (refused.test(command)) return queueMicrotask(() => callback(new Error("refused"), "", ""));
      return exec!(command, { ...limit, ...(typeof rest[0] === "object" ? rest[0] : {}) }, callback);
    },
    execSync: (command: string, given?: object) => execSync!(command, { ...limit, ...given }),
    execFileSync: (program: string, args: readonly string[], given?: object) => {
      if (program === "nvidia-smi") throw new Error("refused");
      return execFileSync!(program, args, { ...limit, ...given });
    },
  });
}
