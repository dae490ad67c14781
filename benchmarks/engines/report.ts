/** The campaign's table: engines beside each other, and below it what was measured and what failed. */
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
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row(["check", ...engines.map(({ engine, version }) => `${engine}<br>${version}`)]),
    row(["---", ...engines.map(() => "---")]),
    ...names.map((name) => row([name, ...engines.map((engine) => outcomeOf(engine, name))])),
    row(["passed, failed", ...engines.map(({ results }) => `${count(results, "pass")}, ${count(results, "fail")}`)]),
  ];
}

/** One line for each result that has something to say. */
export function notes(engines: readonly EngineResult[]): string[] {
  return engines.flatMap(({ engine, missing, results }) => {
    const lines = results
      .filter(({ note }) => note !== "")
      .map(({ check, outcome, note, seconds }) => `- ${check} (${words[outcome]}, ${seconds} s): ${escaped(note)}`);
    return [`## ${engine}`, "", ...(missing === undefined ? lines : [`Not found: ${missing}.`]), ""];
  });
}

/** A note may quote what an engine said: nothing of it is markup. */
function escaped(note: string): string {
  return note.replaceAll(/[<>|*_`]/g, "\\$&");
}

export function count(results: readonly { readonly outcome: Outcome }[], outcome: Outcome): number {
  return results.filter((result) => result.outcome === outcome).length;
}
