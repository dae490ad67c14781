/** What `weiche-agent status` shows: the shape of its JSON, and the same for people. */
import { formatTable } from "@weiche/shared/table.ts";
import type { GpuReading } from "../report/gpu.ts";
import type { SlotView } from "../slots/slot-view.ts";

export interface AgentStatus {
  readonly node: string;
  readonly version: string;
  readonly maintenance: boolean;
  readonly admitting: boolean;
  readonly slots: readonly SlotStatus[];
  readonly routers: readonly {
    readonly address: string;
    readonly state: "linked" | "leaving" | "connecting";
    readonly dataSessions: number;
  }[];
  /** Usage records that no router has committed yet. */
  readonly outbox: { readonly records: number; readonly oldestAgeSeconds?: number };
  /** Absent on a host that measures no GPUs. */
  readonly gpus?: readonly GpuReading[];
}

export interface SlotStatus {
  readonly name: string;
  readonly state: string;
  readonly active?: string;
  readonly next?: string;
  readonly running: number;
  readonly waiting: Readonly<Record<string, number>>;
  readonly oldestRunningSeconds?: number;
  readonly closesInSeconds?: number;
  readonly stateAgeSeconds: number;
  readonly retryInSeconds?: number;
  /** A start or stop in progress; `usualSeconds` is the moving average, absent before the first. */
  readonly switching?: { readonly seconds: number; readonly phase?: string; readonly usualSeconds?: number };
  readonly sleepers: readonly string[];
  /** GPU memory that they keep, as far as it was measured. */
  readonly sleeperMemoryBytes: Readonly<Record<string, number>>;
}

export function slotStatus(view: SlotView): SlotStatus {
  return {
    name: view.name,
    state: view.kind,
    ...(view.active ? { active: view.active } : {}),
    ...(view.next ? { next: view.next } : {}),
    running: view.running,
    waiting: Object.fromEntries(view.waitingByModel),
    ...(view.oldestRunningMs === undefined ? {} : { oldestRunningSeconds: seconds(view.oldestRunningMs) }),
    ...(view.closesInMs === undefined ? {} : { closesInSeconds: seconds(view.closesInMs) }),
    stateAgeSeconds: seconds(view.stateAgeMs),
    ...(view.retryInMs === undefined ? {} : { retryInSeconds: seconds(view.retryInMs) }),
    ...(view.switching === undefined ? {} : { switching: switchStatus(view.switching) }),
    sleepers: view.sleepers.map(({ model }) => model),
    sleeperMemoryBytes: Object.fromEntries(
      view.sleepers.flatMap(({ model, keptBytes }) => (keptBytes === undefined ? [] : [[model, keptBytes]])),
    ),
  };
}

function switchStatus({ ageMs, phase, usualMs }: NonNullable<SlotView["switching"]>): SlotStatus["switching"] {
  return {
    seconds: seconds(ageMs),
    ...(phase ? { phase } : {}),
    ...(usualMs === undefined ? {} : { usualSeconds: seconds(usualMs) }),
  };
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

export function formatStatus(status: AgentStatus): string {
  const head = `node ${status.node} (${status.version})${status.maintenance ? " · in maintenance" : ""}${status.admitting ? "" : " · admits nothing"}`;
  const slots = formatTable(
    ["SLOT", "STATE", "ACTIVE", "NEXT", "RUNNING", "WAITING", "OLDEST", "NOTE"],
    status.slots.map((slot) => [
      slot.name,
      slot.state,
      slot.active,
      slot.next,
      slot.running,
      Object.entries(slot.waiting)
        .map(([model, count]) => `${model} ${count}`)
        .join(", "),
      slot.oldestRunningSeconds === undefined ? undefined : `${slot.oldestRunningSeconds.toFixed(1)} s`,
      note(slot),
    ]),
  );
  const routers = formatTable(
    ["ROUTER", "LINK", "DATA SESSIONS"],
    status.routers.map(({ address, state, dataSessions }) => [address, state, dataSessions]),
  );
  const { records, oldestAgeSeconds } = status.outbox;
  const usage = `usage not yet committed: ${records} record${records === 1 ? "" : "s"}${oldestAgeSeconds === undefined ? "" : `, the oldest ${oldestAgeSeconds.toFixed(1)} s`}`;
  return [head, "", slots, "", routers, "", usage, ...gpuLines(status.gpus)].join("\n");
}

function note(slot: SlotStatus): string | undefined {
  if (slot.switching) return progress(slot.switching);
  if (slot.closesInSeconds !== undefined) return `drain closes in ${slot.closesInSeconds.toFixed(1)} s`;
  if (slot.retryInSeconds !== undefined) return `tried again in ${slot.retryInSeconds.toFixed(1)} s`;
  if (slot.sleepers.length > 0) return `asleep: ${slot.sleepers.map((model) => sleeper(model, slot)).join(", ")}`;
  return undefined;
}

function sleeper(model: string, { sleeperMemoryBytes }: SlotStatus): string {
  const bytes = sleeperMemoryBytes[model];
  return bytes === undefined ? model : `${model} (keeps ${gibibytes(bytes)})`;
}

const barWidth = 20;

/** How far a switch is, if it takes as long as usual. */
function progress({ seconds: spent, phase, usualSeconds: usual }: NonNullable<SlotStatus["switching"]>): string {
  const at = phase === undefined ? "" : `${phase}: `;
  if (usual === undefined) return `${at}for ${spent.toFixed(1)} s so far`;
  const filled = usual > 0 ? Math.min(barWidth, Math.round((spent / usual) * barWidth)) : barWidth;
  return `${at}${"█".repeat(filled)}${"░".repeat(barWidth - filled)} ${spent.toFixed(1)} s, usually ${usual.toFixed(1)} s`;
}

function gpuLines(gpus: readonly GpuReading[] | undefined): string[] {
  if (!gpus) return [];
  const gib = (bytes: number | undefined) => (bytes === undefined ? undefined : gibibytes(bytes));
  const rows = gpus.map((gpu) => [
    gpu.index,
    gib(gpu.memoryUsedBytes),
    gib(gpu.memoryTotalBytes),
    gpu.utilisation === undefined ? undefined : `${Math.round(gpu.utilisation * 100)} %`,
    gpu.temperatureCelsius === undefined ? undefined : `${gpu.temperatureCelsius} °C`,
    gpu.powerWatts === undefined ? undefined : `${Math.round(gpu.powerWatts)} W`,
  ]);
  return ["", formatTable(["GPU", "USED", "MEMORY", "LOAD", "TEMPERATURE", "POWER"], rows)];
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
