/** Measures one load on one program: the client's results, the program's cost and the machine's other work. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunningProgram } from "../peers/program.ts";
import { compileNatives, type Natives } from "./native/compile.ts";
import { runLoad, startEngine, type Load, type LoadResult, type RunningEngine } from "./native/run-load.ts";
import { chooseCores, cpuSecondsOf, machineTime } from "../../e2e/cluster/processes.ts";

export interface Bench {
  readonly natives: Natives;
  readonly cores: { readonly load: number; readonly test: number };
  readonly engine: RunningEngine;
  /** A temporary directory that the database's user can enter if root runs this. */
  readonly directory: string;
}

/** Compiles the native programs and starts the engine. Closing `opened` ends it and removes the directory. */
export async function openBench(opened: AsyncDisposableStack): Promise<Bench> {
  const natives = compileNatives();
  const cores = chooseCores();
  const directory = mkdtempSync(join(tmpdir(), "weiche-bench-"));
  opened.defer(() => rmSync(directory, { recursive: true, force: true }));
  chmodSync(directory, 0o711);
  return { natives, cores, engine: opened.use(await startEngine(natives, cores.load)), directory };
}

export interface Measured {
  readonly result: LoadResult;
  /** The seconds of processor time by role during the measurement. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  /** How many cores were busy with programs other than load, engine and the program under test. */
  readonly foreignCores: number;
  /** The share of all cores' time that the host gave to other machines. */
  readonly stolenShare: number;
}

const loadRoles = { engine: "load: engine", bench: "load: bench" };

export type LoadWish = Omit<Load, "port" | "path" | "keys" | "headers">;

export async function measure(bench: Bench, program: RunningProgram, wish: LoadWish): Promise<Measured> {
  const { natives, cores, engine } = bench;
  const look = () => ({
    atMs: performance.now(),
    // The load client and the waiting programs are children of this process.
    all: cpuSecondsOf({ ...program.processes, [loadRoles.engine]: engine.pid, [loadRoles.bench]: process.pid }),
    machine: machineTime(),
  });
  type Look = ReturnType<typeof look>;
  const looks: { from?: Look; to?: Look } = {};
  const result = await runLoad(natives, cores.load, loadOn(program, wish), {
    measuring: () => void (looks.from = look()),
    measured: () => void (looks.to = look()),
  });
  const { from, to } = looks;
  if (!from || !to) throw new Error("the load client measured nothing");
  const { all } = from;
  const used = Object.entries(to.all).map(([role, seconds]) => [role, seconds - (all[role] ?? 0)] as const);
  const seconds = (to.atMs - from.atMs) / 1_000;
  const busy = sum(to.machine.busy) - sum(from.machine.busy);
  return {
    result,
    cpuSeconds: Object.fromEntries(used.filter(([role]) => role in program.processes)),
    foreignCores: Math.max(0, (busy - sum(used.map(([, own]) => own))) / seconds),
    stolenShare: (to.machine.stolen - from.machine.stolen) / seconds / to.machine.busy.length,
  };
}

export function loadOn({ port, otherPorts = [], path, keys, headers }: RunningProgram, wish: LoadWish): Load {
  return { ...wish, port: [port, ...otherPorts].join(","), path, keys, headers };
}

/** Returns all measured values as named numbers for tables and ratios. */
export function valuesOf({ result, cpuSeconds, foreignCores, stolenShare }: Measured): Record<string, number> {
  const { seconds, requests, tokens, endings, firstByteUs, gapUs, delayUs, wholeUs } = result;
  const cpu = sum(Object.values(cpuSeconds));
  const per = (count: number, what: string) => {
    if (count === 0) return {};
    const micros = (own: number) => (own * 1e6) / count;
    const roles = Object.entries(cpuSeconds).map(([role, own]) => [`cpuMicrosPer${what} ${role}`, micros(own)]);
    const all = { [`cpuMicrosPer${what}`]: micros(cpu), [`${what.toLowerCase()}sPerSecond`]: count / seconds };
    return { ...all, ...(Object.fromEntries(roles) as Record<string, number>) };
  };
  const { whole: _whole, ...lost } = endings;
  const times = {
    ...{ firstByteP50Us: firstByteUs.p50, firstByteP99Us: firstByteUs.p99 },
    ...{ wholeP50Us: wholeUs.p50, wholeP99Us: wholeUs.p99, gapP50Us: gapUs.p50, gapP99Us: gapUs.p99 },
    ...{ delayP50Us: delayUs.p50, delayP99Us: delayUs.p99 },
  };
  const measured = Object.entries(times).filter(([, value]) => value !== undefined);
  return {
    ...{ ...per(requests, "Request"), ...per(tokens, "Chunk") },
    ...(Object.fromEntries(measured) as Record<string, number>),
    lost: sum(Object.values(lost)),
    coreShare: cpu / seconds,
    clientCoreShare: result.cpuSeconds / seconds,
    megabytesPerSecond: result.bytes / seconds / 1e6,
    foreignCores,
    stolenShare,
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
