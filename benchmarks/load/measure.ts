/** One load on one program: what the client saw, what the program cost, and what else the machine did meanwhile. */
import type { RunningProgram } from "../peers/program.ts";
import type { Natives } from "./native/compile.ts";
import { runLoad, type Load, type LoadResult, type RunningEngine } from "./native/run-load.ts";
import { cpuSecondsOf, machineTime } from "./processes.ts";

export interface Bench {
  readonly natives: Natives;
  readonly cores: { readonly load: number; readonly test: number };
  readonly engine: RunningEngine;
}

export interface Measured {
  readonly result: LoadResult;
  /** Seconds of processor time by role, while measuring. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  /** Cores that programs other than load, engine and the program under test kept busy. */
  readonly foreignCores: number;
  /** Share of all cores that the host gave to others. */
  readonly stolenShare: number;
}

const loadRoles = { engine: "load: engine", bench: "load: bench" };

export type LoadWish = Omit<Load, "port" | "path" | "keys" | "headers">;

export async function measure(bench: Bench, program: RunningProgram, wish: LoadWish): Promise<Measured> {
  const { natives, cores, engine } = bench;
  const { port, path, keys, headers } = program;
  const target = { port, ...(path && { path }), ...(keys && { keys }), ...(headers && { headers }) };
  const look = () => ({
    atMs: performance.now(),
    // The load client and programs that wait for their turn are below this process.
    all: cpuSecondsOf({ ...program.processes, [loadRoles.engine]: engine.pid, [loadRoles.bench]: process.pid }),
    machine: machineTime(),
  });
  type Look = ReturnType<typeof look>;
  const looks: { from?: Look; to?: Look } = {};
  const result = await runLoad(
    natives,
    cores.load,
    { ...wish, ...target },
    { measuring: () => void (looks.from = look()), measured: () => void (looks.to = look()) },
  );
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

/** Everything that is counted, as named numbers for tables and ratios. */
export function valuesOf({ result, cpuSeconds, foreignCores, stolenShare }: Measured): Record<string, number> {
  const { seconds, requests, tokens, endings, firstByteUs, gapUs, delayUs, wholeUs } = result;
  const cpu = sum(Object.values(cpuSeconds));
  const per = (count: number, what: string) =>
    count === 0
      ? {}
      : {
          [`cpuMicrosPer${what}`]: (cpu * 1e6) / count,
          ...Object.fromEntries(
            Object.entries(cpuSeconds).map(([role, own]) => [`cpuMicrosPer${what} ${role}`, (own * 1e6) / count]),
          ),
          [`${what.toLowerCase()}sPerSecond`]: count / seconds,
        };
  const { whole: _whole, ...lost } = endings;
  const defined = (values: Record<string, number | undefined>) =>
    Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Record<string, number>;
  return {
    ...per(requests, "Request"),
    ...per(tokens, "Chunk"),
    ...defined({ firstByteP50Us: firstByteUs.p50, firstByteP99Us: firstByteUs.p99 }),
    ...defined({ wholeP50Us: wholeUs.p50, wholeP99Us: wholeUs.p99, gapP50Us: gapUs.p50, gapP99Us: gapUs.p99 }),
    ...defined({ delayP50Us: delayUs.p50, delayP99Us: delayUs.p99 }),
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
