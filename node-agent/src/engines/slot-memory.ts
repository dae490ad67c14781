/**
 * GPU memory of one slot. Waits for free memory for an engine, and for the memory of a stopped engine, which is freed
 * later than its process exits. Reports foreign processes. Does not wait on hosts without GPU measurements.
 */
import { gibibytes } from "@weiche/shared/program/amounts.ts";
import { sleep, type Clock } from "@weiche/shared/time/clock.ts";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineSpec } from "./engine.ts";
import type { HandleStore } from "./handle-store.ts";
import { commandHash } from "./launchers/engine-command.ts";
import type { GpuProcess, GpuReader, GpuReading } from "../host/gpu.ts";

export interface SlotMemoryEvents {
  /** An engine waits for `missingBytes` more free memory on its slot's GPUs. */
  memoryAwaited(slot: SlotName, model: ModelId, missingBytes: number): void;
  /** The memory of an engine that stopped or fell asleep was not free in time. */
  memoryLate(slot: SlotName, model: ModelId): void;
  /**
   * A process that is not an engine of this node holds memory on the slot's GPUs. It is reported once and left alone.
   */
  foreignGpuProcess(slot: SlotName, pid: number, usedBytes: number | undefined): void;
}

interface SlotMemoryOptions {
  readonly slot: SlotName;
  readonly gpus: readonly number[];
  readonly clock: Clock;
  readonly reader: GpuReader;
  readonly handles: HandleStore;
  readonly events: SlotMemoryEvents;
  /**
   * Returns the process ids of all engines of this node. If undefined, they are unknown, and no process counts as
   * foreign.
   */
  readonly engineProcesses: () => Promise<ReadonlySet<number> | undefined>;
  readonly limits: MemoryLimits;
}

export interface MemoryLimits {
  readonly roomMsMax: number;
  /** How long it waits before it stops sleeping engines to make room. */
  readonly makeRoomAfterMs: number;
  readonly returnMsMax: number;
  /** The share of its memory that must become free, 0 to 1, because a sleeper keeps some and readings fluctuate. */
  readonly returnShareMin: number;
}

interface Wait {
  /** Returns the bytes that the engine itself holds asleep. They count as free for it. */
  readonly ownBytes: () => Promise<number | undefined>;
  /** Stops a sleeper. Resolves with whether there was one. */
  readonly makeRoom: (missingBytes: number) => Promise<boolean>;
  /** Called before the wait if the need is known. */
  readonly onWait: () => void;
}

/** Free bytes, and bytes held by one engine, before it stopped or fell asleep. */
export interface MemoryBefore {
  readonly freeBytes: number;
  readonly heldBytes: number;
}

const pollMs = 100;
const steadyMs = 10_000;
/** The share of the memory held last time that must be free now, because readings fluctuate. */
const knownShare = 0.95;

export class SlotMemory {
  readonly #options: SlotMemoryOptions;
  readonly #usedBytes = new Map<ModelId, number>();
  #reported = new Set<number>();

  constructor(options: SlotMemoryOptions) {
    this.#options = options;
  }

  /** Returns the free bytes on the slot's GPUs together, or undefined if not measured. */
  async freeBytes(ageMsMax = 0): Promise<number | undefined> {
    return sumOf(await this.#gpus(ageMsMax), (gpu) => gpu.memoryFreeBytes);
  }

  /**
   * Returns the free bytes without an engine that is about to start or wake. Undefined for an external engine, which
   * may already hold memory.
   */
  async freeWithout({ launcher }: EngineSpec, keptBytes = 0): Promise<number | undefined> {
    const free = launcher.kind === "external" ? undefined : await this.freeBytes(steadyMs);
    return free === undefined ? undefined : free + keptBytes;
  }

  /** Stores, also for the next agent, how much an engine was seen to hold awake. No switch depends on the write. */
  async learn({ model, launcher }: EngineSpec, heldBytes: number): Promise<void> {
    const { handles, slot } = this.#options;
    this.#usedBytes.set(model, heldBytes);
    await handles.writeUse(slot, model, commandHash(launcher), heldBytes).catch(() => {});
  }

  /** Loads how much GPU memory each of these engines was seen to hold, running or not. */
  async recall(engines: readonly EngineSpec[]): Promise<void> {
    const { handles, slot } = this.#options;
    for (const { model, launcher } of engines) {
      const usedBytes = await handles.readUse(slot, model, commandHash(launcher));
      if (usedBytes !== undefined) this.#usedBytes.set(model, usedBytes);
    }
  }

  /** Returns the bytes that the engine needs: as configured, otherwise as it held last time. Undefined if unknown. */
  needOf({ model, memoryBytes }: EngineSpec): number | undefined {
    return memoryBytes ?? this.#usedBytes.get(model);
  }

  /**
   * Resolves when there is room for the engine, or its need is unknown or not measured. Rejects if there is no room, or
   * with the signal's reason. A learned need causes a rejection only if foreign processes hold the memory.
   */
  async waitForRoom(spec: EngineSpec, wait: Wait, signal: AbortSignal): Promise<void> {
    const { clock, events, limits, slot } = this.#options;
    const isConfigured = spec.memoryBytes !== undefined;
    const needBytes = this.needOf(spec);
    if (needBytes === undefined) return;
    const neededBytes = isConfigured ? needBytes : needBytes * knownShare;
    wait.onWait();
    if (isConfigured) await this.#requireFit(neededBytes);
    let sinceMs = clock.monotonicMs();
    for (let first = true; ; first = false) {
      signal.throwIfAborted();
      const free = await this.freeBytes(first ? pollMs : 0);
      if (free === undefined || free >= neededBytes) return;
      const missing = neededBytes - free - ((await wait.ownBytes()) ?? 0);
      if (missing <= 0) return;
      if (first) events.memoryAwaited(slot, spec.model, missing);
      const waitedMs = clock.monotonicMs() - sinceMs;
      if (waitedMs >= limits.makeRoomAfterMs) {
        const shortage = `${gibibytes(missing)} of GPU memory are missing`;
        const holders = await this.foreignHolders(neededBytes);
        if (holders !== undefined) throw new Error(`${shortage}: ${holders}`);
        if (await wait.makeRoom(missing)) sinceMs = clock.monotonicMs();
        else if (!isConfigured) return;
        else if (waitedMs >= limits.roomMsMax) throw new Error(`${shortage}, also after ${waitedMs / 1000} s`);
      }
      await sleep(clock, pollMs, signal);
    }
  }

  async #requireFit(neededBytes: number): Promise<void> {
    const total = sumOf(await this.#gpus(steadyMs), (gpu) => gpu.memoryTotalBytes);
    if (total === undefined || neededBytes <= total) return;
    throw new Error(`it needs ${gibibytes(neededBytes)} of GPU memory, and the slot's GPUs have ${gibibytes(total)}`);
  }

  /**
   * Call this before an engine stops or falls asleep, after its memory was steady for `steadyForMs`. `freeWithout` is
   * used if nvidia-smi knows no pids.
   */
  async beforeLeaving(
    processes: () => Promise<readonly number[]>,
    steadyForMs: number,
    freeWithout: number | undefined,
  ): Promise<MemoryBefore | undefined> {
    const ageMsMax = Math.min(steadyForMs, steadyMs);
    const freeBytes = await this.freeBytes(ageMsMax);
    if (freeBytes === undefined) return undefined;
    const held = await this.heldBy(await processes(), ageMsMax);
    const heldBytes = held ?? (freeWithout === undefined ? undefined : Math.max(0, freeWithout - freeBytes));
    return heldBytes === undefined ? undefined : { freeBytes, heldBytes };
  }

  /** Returns the free bytes without a running engine. Undefined if not measured. Errors are ignored. */
  async freeWithoutRunning(processes: () => Promise<readonly number[]>): Promise<number | undefined> {
    const before = await this.beforeLeaving(processes, 0, undefined).catch(() => undefined);
    return before && before.freeBytes + before.heldBytes;
  }

  /** Resolves with whether the memory became free in time, or with true if nothing is measured. */
  async hasReturned(model: ModelId, before: MemoryBefore | undefined): Promise<boolean> {
    if (before === undefined) return true;
    const { clock, events, limits, slot } = this.#options;
    const untilMs = clock.monotonicMs() + limits.returnMsMax;
    const enoughBytes = before.freeBytes + before.heldBytes * limits.returnShareMin;
    for (;;) {
      const free = await this.freeBytes();
      if (free === undefined || free >= enoughBytes) return true;
      if (clock.monotonicMs() >= untilMs) break;
      await sleep(clock, pollMs);
    }
    events.memoryLate(slot, model);
    return false;
  }

  /** Returns the bytes held by an engine that has just fallen asleep, or undefined if not measured. */
  async keptBytes(
    processes: () => Promise<readonly number[]>,
    before: MemoryBefore | undefined,
  ): Promise<number | undefined> {
    // Read first, because the next engine soon takes a part of the free memory.
    const free = before && (await this.freeBytes(steadyMs));
    const held = await this.heldBy(await processes());
    if (held !== undefined || before === undefined || free === undefined) return held;
    return Math.max(0, before.heldBytes - (free - before.freeBytes));
  }

  /** Returns the processes on the slot's GPUs that are not engines of this node. They are reported, never touched. */
  async foreignProcesses(): Promise<readonly GpuProcess[]> {
    const processes = (await this.#processes(0)) ?? [];
    const engines = processes.length > 0 ? await this.#options.engineProcesses() : undefined;
    const foreign = engines ? processes.filter((process) => !engines.has(process.pid)) : [];
    for (const { pid, memoryUsedBytes } of foreign) {
      if (!this.#reported.has(pid)) this.#options.events.foreignGpuProcess(this.#options.slot, pid, memoryUsedBytes);
    }
    this.#reported = new Set(foreign.map((process) => process.pid));
    return foreign;
  }

  /** Returns the GPU memory of these processes. Undefined if nvidia-smi does not list them, as in some containers. */
  async heldBy(pids: readonly number[], ageMsMax = 0): Promise<number | undefined> {
    if (pids.length === 0) return undefined;
    const known = (await this.#processes(ageMsMax))?.filter((process) => pids.includes(process.pid));
    return known?.length ? sumOf(known, (process) => process.memoryUsedBytes) : undefined;
  }

  /** Describes the foreign processes if they alone leave less than `neededBytes`. Returns undefined otherwise. */
  async foreignHolders(neededBytes = Infinity): Promise<string | undefined> {
    const [foreign, gpus] = await Promise.all([this.foreignProcesses(), this.#gpus(steadyMs)]);
    const total = sumOf(gpus, (gpu) => gpu.memoryTotalBytes);
    const taken = foreign.reduce((sum, process) => sum + (process.memoryUsedBytes ?? 0), 0);
    if (total === undefined || taken === 0 || total - taken >= neededBytes) return undefined;
    const pids = foreign.map((process) => process.pid).join(", ");
    return `processes that are not engines of this node hold ${gibibytes(taken)} (pid ${pids})`;
  }

  async #gpus(ageMsMax: number): Promise<readonly GpuReading[] | undefined> {
    const { gpus, reader } = this.#options;
    if (gpus.length === 0) return undefined;
    const mine = (await reader.readGpus(ageMsMax))?.filter((gpu) => gpus.includes(gpu.index));
    return mine?.length === gpus.length ? mine : undefined;
  }

  async #processes(ageMsMax: number): Promise<readonly GpuProcess[] | undefined> {
    const uuids = (await this.#gpus(steadyMs))?.map((gpu) => gpu.uuid);
    if (!uuids) return undefined;
    return (await this.#options.reader.readGpuProcesses(ageMsMax))?.filter((process) =>
      uuids.includes(process.gpuUuid),
    );
  }
}

/**
 * Returns whether an engine's last output reports missing GPU memory, in the words of vLLM, llama.cpp, SGLang or
 * PyTorch.
 */
export function missesMemory(lastLines: readonly string[]): boolean {
  return lastLines.some((line) => /out of memory|(free|available|enough) memory|unable to allocate/i.test(line));
}

/** Returns the sum of the values, or undefined if `items` or one value is. */
function sumOf<T>(items: readonly T[] | undefined, valueOf: (item: T) => number | undefined): number | undefined {
  return items?.reduce<number | undefined>((sum, item) => {
    const value = valueOf(item);
    return sum === undefined || value === undefined ? undefined : sum + value;
  }, 0);
}
