/** The programs of an earlier commit's bench, and the commit of the latest report. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { CommittedCode } from "../../e2e/cluster/committed-code.ts";
import type { Machine } from "../../e2e/cluster/measurement.ts";
import type { Program } from "../peers/program.ts";
import { resultsDirectory } from "./result-files.ts";

/** Returns all programs of the commit's bench. */
export async function committedPrograms({ root }: CommittedCode): Promise<readonly Program[]> {
  const { programs } = (await import(join(root, "benchmarks/peers/all.ts"))) as {
    readonly programs: readonly Program[];
  };
  return programs;
}

/** Returns the commit of the latest whole bench in `benchmarks/results`. */
export function committedReport(): string {
  const files = readdirSync(resultsDirectory).map((name) => join(resultsDirectory, name, "results.json"));
  const youngest = files
    .filter((file) => existsSync(file))
    .toSorted((a, b) => a.localeCompare(b))
    .at(-1);
  if (youngest === undefined) throw new Error("no report is committed: npm run bench");
  return (JSON.parse(readFileSync(youngest, "utf8")) as { readonly machine: Machine }).machine.commit;
}
