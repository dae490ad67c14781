/** Reads and writes the committed last run of each engine, as a page and as JSON. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { machineText, today, type Machine } from "../cluster/measurement.ts";
import type { EngineResult } from "./campaign.ts";
import { notes, table } from "./report.ts";

export interface Run extends EngineResult {
  readonly date: string;
  readonly machine: Omit<Machine, "loadBefore"> & { readonly loadBefore: number | null };
  /** A remark that a person has added to the JSON. */
  readonly remark?: string;
}

/** Replaces the runs of engines that ran, and keeps those of other engines. */
export function merged(before: readonly Run[], now: readonly Run[]): Run[] {
  const names = [...new Set([...before, ...now].map(({ engine }) => engine))];
  const of = (runs: readonly Run[], name: string) => runs.find(({ engine }) => engine === name);
  return names.flatMap((name) => {
    const [earlier, latest] = [of(before, name), of(now, name)];
    return (latest && latest.missing === undefined ? latest : (earlier ?? latest)) ?? [];
  });
}

export function writeResults(engines: readonly EngineResult[], machine: Machine): void {
  const file = join(import.meta.dirname, "latest.json");
  const date = today();
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { engines: Run[] }).engines : [];
  const now = engines.map((engine) => ({ ...engine, date, machine }));
  const runs = merged(before, now);
  writeFileSync(file, `${JSON.stringify({ engines: runs }, null, 2)}\n`);
  writeFileSync(join(import.meta.dirname, "latest.md"), page(runs).join("\n"));
}

function page(runs: readonly Run[]): string[] {
  const found = runs.filter(({ missing }) => missing === undefined);
  const about = found.map(({ engine, date, remark, machine }) => {
    const load = `load before ${machine.loadBefore ?? "not measured"}`;
    return `- ${engine}: ${date}, ${machineText(machine)}, ${load}${remark === undefined ? "" : `. ${remark}`}`;
  });
  const intro = "Made by `npm run engines -- --write`; what each check does: [checks](checks/).";
  return ["# Real engines behind router and agent", "", intro, "", ...about, "", ...table(runs), "", ...notes(runs)];
}
