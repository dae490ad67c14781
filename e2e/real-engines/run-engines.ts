/**
 * Runs the same checks on real engines with a real router and agent (`npm run engines`). Finds engines in PATH or by
 * variables. The embedded engine is always included.
 */
import { parseArgs } from "node:util";
import { describeMachine } from "../cluster/measurement.ts";
import { tryEngine, type EngineResult } from "./campaign.ts";
import { findEngines } from "./engine-kinds.ts";
import { count, notes, table } from "./report.ts";
import { writeResults } from "./results.ts";

const { values } = parseArgs({
  options: {
    /** The names of engines, separated by commas. */
    engine: { type: "string" },
    /** A part of a check's name. */
    check: { type: "string" },
    long: { type: "boolean", default: false },
    /** Writes e2e/real-engines/latest.md and .json. Engines that did not run keep their earlier results. */
    write: { type: "boolean", default: false },
  },
});
if (values.write && values.check !== undefined) throw new Error("--write is for all checks: leave --check out");
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

console.log(`\n${[...table(engines), "", ...notes(engines)].join("\n")}`);
if (values.write) writeResults(engines, machine);
const results = engines.flatMap((engine) => engine.results);
const failed = count(results, "fail");
console.log(`${count(results, "pass")} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
