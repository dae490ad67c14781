/** Measures the memory of programs: what they hold after garbage collection, through V8's inspector, and what is resident. */
import { readdirSync, readFileSync } from "node:fs";
import type { RunningProgram } from "./cluster.ts";

/** The environment that opens a program's inspector. */
export const inspected = { NODE_OPTIONS: "--inspect=127.0.0.1:0" };

/** Several are needed, because V8 frees some dead objects only in the next collection. */
const collections = 3;

/** Returns the bytes of the heap and of the external memory that it references. */
export async function keptBytes(program: RunningProgram): Promise<number> {
  const [address] = /ws:\/\/\S+/.exec(program.output.find((line) => line.startsWith("Debugger listening"))!)!;
  const socket = new WebSocket(address);
  const { promise: opened, resolve, reject } = Promise.withResolvers<unknown>();
  socket.addEventListener("open", resolve, { once: true });
  socket.addEventListener("error", reject, { once: true });
  await opened;
  for (let n = 0; n < collections; n++) await call(socket, "HeapProfiler.collectGarbage");
  const expression = "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())";
  const answer = await call(socket, "Runtime.evaluate", { expression, returnByValue: true });
  socket.close();
  return (answer as { result: { value: number } }).result.value;
}

/** Returns the resident memory of a process, or 0 if it has ended. */
export function residentBytes(pid: number): number {
  try {
    return 1_024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Returns the resident memory of each process group that has any. */
export function bytesOfGroups(): ReadonlyMap<number, number> {
  const groups = new Map<number, number>();
  for (const pid of readdirSync("/proc").map(Number).filter(Number.isInteger)) {
    const group = groupOf(pid);
    const bytes = residentBytes(pid);
    if (group !== undefined && bytes > 0) groups.set(group, (groups.get(group) ?? 0) + bytes);
  }
  return groups;
}

function groupOf(pid: number): number | undefined {
  try {
    // The name, in parentheses, may contain spaces. State, parent and group follow.
    const [, group] = /\) \S \d+ (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return Number(group);
  } catch {
    return undefined;
  }
}

/** Calls one method of the inspector. Do not call it concurrently. */
async function call(socket: WebSocket, method: string, params: object = {}): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<MessageEvent>();
  socket.addEventListener("message", resolve, { once: true });
  socket.send(JSON.stringify({ id: 1, method, params }));
  return (JSON.parse(String((await promise).data)) as { result: unknown }).result;
}
