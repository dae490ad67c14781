/**
 * `npm run engines`: real engines below a real router and agent, each through the same list of checks. Engines are found in
 * PATH or by variables; the embedded one is always there.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine, resultsDirectory } from "./cluster/result.ts";
import { tryEngine, type EngineResult } from "./engines/campaign.ts";
import { findEngines } from "./engines/engine-kinds.ts";
import { count, notes, table } from "./engines/report.ts";

const { values } = parseArgs({
  options: {
    /** Engines, separated by commas. */
    engine: { type: "string" },
    /** Part of a check's name. */
    check: { type: "string" },
    long: { type: "boolean", default: false },
    /** Writes benchmarks/results/engines.md and .json. */
    write: { type: "boolean", default: false },
  },
});
const machine = describeMachine();
const wished = values.engine?.split(",");
const found = (await findEngines()).filter(({ name }) => wished === undefined || wished.includes(name));
for (const engine of found) if ("missing" in engine) console.log(`${engine.name} was not found: ${engine.missing}`);

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
const engines: EngineResult[] = [];
for (const engine of found) {
  if (stopping.signal.aborted) break;
  const options = {
    withLong: values.long,
    signal: stopping.signal,
    ...(values.check === undefined ? {} : { only: values.check }),
  };
  const onResult = (name: string, { check, outcome, note, seconds }: EngineResult["results"][number]) =>
    console.log(`${name}: ${outcome.toUpperCase()} ${check} (${seconds} s)${note === "" ? "" : `: ${note}`}`);
  engines.push(await tryEngine(engine, { ...options, onResult }));
}

const page = [...table(engines), "", ...notes(engines)];
console.log(`\n${page.join("\n")}`);
if (values.write) write(page);
const results = engines.flatMap((engine) => engine.results);
const failed = count(results, "fail");
console.log(`${count(results, "pass")} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function write(lines: readonly string[]): void {
  const { cpu, cores, memoryGiB, node, commit, loadBefore } = machine;
  const date = Temporal.Now.plainDateISO().toString();
  const about = `${date}, ${cores} cores of ${cpu}, ${memoryGiB} GiB, Node.js ${node}, commit ${commit}, load before ${loadBefore}. Made by \`npm run engines -- --write\`; what each check does: [engines/checks](../engines/checks/).`;
  const text = ["# Real engines below router and agent", "", about, "", ...lines, ""].join("\n");
  writeFileSync(join(resultsDirectory, "engines.md"), text);
  writeFileSync(join(resultsDirectory, "engines.json"), `${JSON.stringify({ date, machine, engines }, null, 2)}\n`);
}
