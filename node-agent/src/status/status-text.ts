/** Formats `weiche-agent status`. Highlights problems, and fits narrow terminals. */
import { counted, gibibytesOf } from "@weiche/shared/program/amounts.ts";
import { fileSystemTable, gpuTable, isNearlyFull, machineLines } from "@weiche/shared/program/machine-text.ts";
import { isEnding, type CertificateFile } from "@weiche/shared/program/certificate-expiry.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import { formatTable, shortened, type Cell } from "@weiche/shared/program/table.ts";
import type { AgentStatus, SlotStatus } from "./status.ts";
import type { EngineStatus } from "./engine-status.ts";

type Tone = "bold" | "red" | "yellow";

export interface TextOptions {
  /** Width of the terminal, to which lines are cut. If undefined, lines are not cut. */
  readonly width?: number;
  /** If undefined, the text has no colours. */
  readonly paint?: (tone: Tone, text: string) => string;
}

interface Row {
  readonly cells: readonly Cell[];
  readonly tone?: Tone | undefined;
  readonly notes?: readonly string[];
}

export function formatStatus(status: AgentStatus, options: TextOptions = {}): string {
  const table = (headers: readonly string[], rows: readonly Row[], none = "") =>
    rows.length === 0 && none !== "" ? ["", none] : ["", ...tableLines(headers, rows, options)];
  const routers = status.routers.map(({ address, state, dataSessions, reason }) => ({
    cells: [address, state, dataSessions],
    tone: state === "linked" ? undefined : ("yellow" as const),
    notes: reason === undefined ? [] : [`why: ${reason}`],
  }));
  return [
    ...headLines(status, options),
    ...table(["SLOT", "STATE", "ACTIVE", "NEXT", "RUNNING", "OLDEST", "FOR"], status.slots.map(slotRow)),
    ...table(
      ["SLOT", "ENGINE", "STATE", "PID", "UP", "RESTARTS", "GPU", "RAM"],
      status.engines.map(engineRow),
      "no engine runs",
    ),
    ...table(["MEMORY", "USED", "OF", "LOAD", "TEMP", "POWER"], memoryRows(status)),
    ...machineTables(status, table, options),
    ...table(["ROUTER", "LINK", "DATA CONNECTIONS"], routers),
    ...(status.certificates.length > 0
      ? table(["CERTIFICATE", "FILE", "EXPIRES", "DAYS"], status.certificates.map(certificateRow))
      : []),
    "",
    outboxLine(status, options),
  ].join("\n");
}

function headLines({ node, version, maintenance, admitting, routers }: AgentStatus, options: TextOptions): string[] {
  const troubles = [
    ...(maintenance ? ["in maintenance"] : []),
    ...(admitting ? [] : ["accepts no requests"]),
    ...(routers.some(({ state }) => state === "linked") ? [] : ["no router"]),
  ];
  const head = cut(plainText(`node ${node} (${version})`), options);
  return [painted(head, "bold", options) + troubles.map((what) => ` · ${painted(what, "red", options)}`).join("")];
}

function slotRow(slot: SlotStatus): Row {
  const { name, state, active, next, running, oldestRunningSeconds, stateAgeSeconds } = slot;
  const oldest = oldestRunningSeconds === undefined ? undefined : duration(oldestRunningSeconds);
  return {
    cells: [name, state, active, next, running, oldest, duration(stateAgeSeconds)],
    tone: state === "failed" ? "red" : slot.switching || state.startsWith("draining") ? "yellow" : undefined,
    notes: slotNotes(slot),
  };
}

function slotNotes(slot: SlotStatus): readonly string[] {
  const { state, waiting, switching, closesInSeconds, retryInSeconds, sleepers } = slot;
  const waiters = Object.entries(waiting).map(([model, count]) => `${model} ${count}`);
  return [
    ...(waiters.length > 0 ? [`waiting: ${waiters.join(", ")}`] : []),
    ...(closesInSeconds === undefined ? [] : [`drain: accepts requests for another ${closesInSeconds.toFixed(1)} s`]),
    ...(state === "draining-closed" ? ["drain: closed, running requests finish"] : []),
    ...(switching ? [progress(switching)] : []),
    ...(slot.failure === undefined ? [] : [`${state === "failed" ? "why" : "last failure"}: ${slot.failure}`]),
    ...(retryInSeconds === undefined ? [] : [`next try in ${retryInSeconds.toFixed(1)} s`]),
    ...(sleepers.length > 0 ? [`asleep: ${sleepers.map((model) => sleeper(model, slot)).join(", ")}`] : []),
  ];
}

function sleeper(model: string, { sleeperMemoryBytes }: SlotStatus): string {
  const bytes = sleeperMemoryBytes[model];
  return bytes === undefined ? model : `${model} (keeps ${gibibytesOf(bytes)})`;
}

const barWidth = 20;

/** Progress of a switch, compared with its usual time. */
function progress({ seconds: spent, phase, usualSeconds: usual }: NonNullable<SlotStatus["switching"]>): string {
  const at = phase === undefined ? "" : `${phase}: `;
  if (usual === undefined) return `${at}for ${spent.toFixed(1)} s so far`;
  const filled = usual > 0 ? Math.min(barWidth, Math.round((spent / usual) * barWidth)) : barWidth;
  return `${at}${"█".repeat(filled)}${"░".repeat(barWidth - filled)} ${spent.toFixed(1)} s, usually ${usual.toFixed(1)} s`;
}

function engineRow(engine: EngineStatus): Row {
  const { slot, model, state, pid, ageSeconds, restarts, gpuMemoryBytes, hostMemoryBytes } = engine;
  const up = ageSeconds === undefined ? undefined : duration(ageSeconds);
  return {
    cells: [slot, model, state, pid, up, restarts, gibibytesOf(gpuMemoryBytes), gibibytesOf(hostMemoryBytes)],
    tone: state === "gone" || state === "unknown" ? "red" : undefined,
    notes: engineNotes(engine),
  };
}

function engineNotes({ kvCacheUse: use, prefixCacheHitRate: hits }: EngineStatus): readonly string[] {
  const parts = [
    ...(use === undefined ? [] : [`${percent(use)} of the KV cache in use`]),
    ...(hits === undefined ? [] : [`${percent(hits)} of prompt tokens found in it`]),
  ];
  return parts.length > 0 ? [parts.join(", ")] : [];
}

function memoryRows({ host, gpus }: AgentStatus): readonly Row[] {
  const { memoryTotalBytes: total, memoryAvailableBytes: available, cpuUse } = host ?? {};
  const used = total === undefined || available === undefined ? undefined : total - available;
  return [
    ...(gpus ?? []).map((gpu) => ({
      cells: [
        `GPU ${gpu.index}`,
        gibibytesOf(gpu.memoryUsedBytes),
        gibibytesOf(gpu.memoryTotalBytes),
        percent(gpu.utilisation),
        gpu.temperatureCelsius === undefined ? undefined : `${gpu.temperatureCelsius} °C`,
        gpu.powerWatts === undefined ? undefined : `${Math.round(gpu.powerWatts)} W`,
      ],
    })),
    { cells: ["host", gibibytesOf(used), gibibytesOf(total), percent(cpuUse), undefined, undefined] },
  ];
}

function certificateRow(file: CertificateFile): Row {
  const { use, path, expiresAt, daysLeft } = file;
  const tone = daysLeft < 0 ? "red" : isEnding(file) ? "yellow" : undefined;
  return { cells: [use, path, expiresAt.slice(0, 10), daysLeft], tone };
}

type Table = (headers: readonly string[], rows: readonly Row[]) => readonly string[];

/** Leaves out values that the memory table already shows. */
function machineTables({ machine, reading }: AgentStatus, table: Table, options: TextOptions): readonly string[] {
  const lines = machineLines({ machine, reading });
  const gpus = machine ? gpuTable(machine) : { headers: [], rows: [] };
  const { headers, rows } = reading ? fileSystemTable(reading) : { headers: [], rows: [] };
  const fileSystems = rows.map((cells, index): Row => {
    return { cells, tone: isNearlyFull(reading!.fileSystems[index]!) ? "red" : undefined };
  });
  return [
    ...(gpus.rows.length > 0
      ? table(
          gpus.headers,
          gpus.rows.map((cells) => ({ cells })),
        )
      : []),
    ...(rows.length > 0 ? table(headers, fileSystems) : []),
    ...(lines.length > 0 ? ["", ...lines.map((line) => cut(line, options))] : []),
  ];
}

/** An older record is shown in red, because it means that delivery to the routers has stopped. */
const lateSeconds = 60;

function outboxLine({ outbox: { records, oldestAgeSeconds } }: AgentStatus, options: TextOptions): string {
  const oldest = oldestAgeSeconds === undefined ? "" : `, the oldest ${duration(oldestAgeSeconds)}`;
  const line = cut(`usage not yet committed: ${counted(records, "record")}${oldest}`, options);
  return painted(line, (oldestAgeSeconds ?? 0) > lateSeconds ? "red" : undefined, options);
}

/** Lays out a table, fitted to the width. */
function tableLines(headers: readonly string[], rows: readonly Row[], options: TextOptions): readonly string[] {
  const table = formatTable(
    headers,
    rows.map((row) => row.cells),
    options.width,
  );
  const [head, rule, ...lines] = table.split("\n");
  const body = lines.flatMap((line, index) => {
    const { tone, notes = [] } = rows[index]!;
    return [line, ...notes.map((note) => cut(`  ${plainText(note)}`, options))].map((each) =>
      painted(each, tone, options),
    );
  });
  return [head!, rule!, ...body];
}

function cut(line: string, { width = Infinity }: TextOptions): string {
  return shortened(line, width);
}

function painted(text: string, tone: Tone | undefined, { paint }: TextOptions): string {
  return paint && tone ? paint(tone, text) : text;
}

/** A duration, with less precision the longer it is. */
function duration(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function percent(share: number | undefined): string | undefined {
  return share === undefined ? undefined : `${Math.round(share * 100)} %`;
}
