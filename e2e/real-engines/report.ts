/** Makes the campaign's table with a column per engine, followed by the measurements and failures. */
import { markdownTable } from "../cluster/measurement.ts";
import type { Outcome } from "./check.ts";
import type { EngineResult } from "./campaign.ts";

const words: Record<Outcome, string> = {
  pass: "pass",
  fail: "**FAIL**",
  "not possible": "not possible",
  "not run": "not run",
};

export function table(engines: readonly EngineResult[]): string[] {
  const names = [...new Set(engines.flatMap(({ results }) => results.map(({ check }) => check)))];
  const outcomeOf = ({ missing, results }: EngineResult, name: string) => {
    const result = results.find(({ check }) => check === name);
    return missing === undefined ? words[result?.outcome ?? "not run"] : "not found";
  };
  const counts = engines.map(({ results }) => `${count(results, "pass")}, ${count(results, "fail")}`);
  return markdownTable(
    ["check", ...engines.map(({ engine, version }) => `${engine}<br>${version}`)],
    [
      ...names.map((name) => [name, ...engines.map((engine) => outcomeOf(engine, name))]),
      ["passed, failed", ...counts],
    ],
  );
}

/** Returns a line for each result with a note. */
export function notes(engines: readonly EngineResult[]): string[] {
  return engines.flatMap(({ engine, missing, results }) => {
    const lines = results
      .filter(({ note }) => note !== "")
      .map(({ check, outcome, note, seconds }) => `- ${check} (${words[outcome]}, ${seconds} s): ${escaped(note)}`);
    return [`## ${engine}`, "", ...(missing === undefined ? lines : [`Not found: ${missing}.`]), ""];
  });
}

/** Escapes Markdown, because a note may quote an engine's output. */
function escaped(note: string): string {
  return note.replaceAll(/[<>|*_`]/g, "\\$&");
}

export function count(results: readonly { readonly outcome: Outcome }[], outcome: Outcome): number {
  return results.filter((result) => result.outcome === outcome).length;
}
