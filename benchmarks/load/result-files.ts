/** Writes the results of a benchmark as JSON and a short page to `benchmarks/results/<date>-<machine>/`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { loadText, machineText, today, type Machine } from "../../e2e/cluster/measurement.ts";

/** The results of all days and machines. */
export const resultsDirectory = join(import.meta.dirname, "../results");

/** Returns the directory for this machine's results of one day. */
export function resultsOf(date: string): string {
  return join(resultsDirectory, `${date}-${hostname()}`);
}

/** Writes the result of a benchmark with the machine's description, and prints the page. */
export function writeResult(name: string, machine: Machine, result: object, page: readonly string[]): void {
  const date = today();
  const about = `${machineText(machine)}. ${loadText(machine)}`;
  const text = [`# ${name}, ${date}`, "", about, "", ...page, ""].join("\n");
  writePage(resultsOf(date), { [`${name}.md`]: text, [`${name}.json`]: { date, machine, ...result } });
}

/** Writes texts unchanged and objects as JSON, and prints the texts. */
export function writePage(directory: string, files: Readonly<Record<string, string | object>>): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const isText = typeof content === "string";
    writeFileSync(join(directory, name), isText ? content : `${JSON.stringify(content, null, 1)}\n`);
    if (isText) console.log(`\n${content}`);
  }
  console.log(directory);
}
