/** The thread that reads the machine's load at each question. A file system that hangs blocks only this thread. */
import { parentPort, workerData } from "node:worker_threads";
import type { KeptPath } from "./file-systems.ts";
import { MachineReader } from "./machine-reader.ts";
import { yieldToOthers } from "@weiche/shared/program/thread-priority.ts";

export interface ReadingThreadData {
  readonly kept: readonly KeptPath[];
}

yieldToOthers();
const { kept } = workerData as ReadingThreadData;
const reader = new MachineReader({ kept, nowMs: () => performance.now() });
parentPort?.on("message", () => parentPort?.postMessage(reader.read()));
