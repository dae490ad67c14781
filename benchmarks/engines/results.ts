/** The last run of each engine, as it is committed: a page and the same as JSON. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resultsDirectory, type Machine } from "../cluster/result.ts";
import type { EngineResult } from "./campaign.ts";
import { notes, table } from "./report.ts";

export interface Run extends EngineResult {
  readonly date: string;
  readonly machine: Omit<Machine, "loadBefore"> & { readonly loadBefore: number | null };
  /** What else has to be known of this run. */
  readonly remark?: string;
}

/** Those that ran take the place of their earlier runs; those that did not keep theirs. */
export function merged(before: readonly Run[], now: readonly Run[]): Run[] {
  const names = [...new Set([...before, ...now].map(({ engine }) => engine))];
  const of = (runs: readonly Run[], name: string) => runs.find(({ engine }) => engine === name);
  return names.flatMap((name) => {
    const [earlier, latest] = [of(before, name), of(now, name)];
    return (latest && latest.missing === undefined ? latest : (earlier ?? latest)) ?? [];
  });
}

export function writeResults(engines: readonly EngineResult[], machine: Machine): void {
  const file = join(resultsDirectory, "engines.json");
  const date = Temporal.Now.plainDateISO().toString();
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { engines: Run[] }).engines : [];
  const runs = merged(
    before,
    engines.map((engine) => ({ ...engine, date, machine })),
  );
  writeFileSync(file, `${JSON.stringify({ engines: runs }, null, 2)}\n`);
  writeFileSync(join(resultsDirectory, "engines.md"), page(runs).join("\n"));
}

function page(runs: readonly Run[]): string[] {
  const about = runs
    .filter(({ missing }) => missing === undefined)
    .map(({ engine, date, remark, machine: { cores, cpu, memoryGiB, node, commit, loadBefore } }) => {
      return `- ${engine}: ${date}, ${cores} cores of ${cpu}, ${memoryGiB} GiB, Node.js ${node}, commit ${commit}, load before ${loadBefore ?? "not measured"}${remark === undefined ? "" : `. ${remark}`}`;
    });
  const intro = "Made by `npm run engines -- --write`; what each check does: [engines/checks](../engines/checks/).";
  return ["# Real engines below router and agent", "", intro, "", ...about, "", ...table(runs), "", ...notes(runs)];
}
