/** Reads a table of NVIDIA's AIConfigurator (`pareto.csv`, `best_config_topn.csv`) as a profile of an engine. */
import { fitStep, type StepPoint } from "@weiche/node-agent/src/profile/step-fit.ts";
import { nearest, type Checked, type Mistake } from "@weiche/shared/files/config-file.ts";

/** The speed of an engine that the tool has computed, not measured. */
interface ComputedSpeed {
  readonly engine: string;
  readonly version: string;
  /** The kind of GPU and how the model is spread over several of them. */
  readonly gpus: string;
  readonly step: ReturnType<typeof fitStep>;
  readonly prefillTokensPerSecond: number;
}

const numbers = ["isl", "osl", "concurrency", "ttft", "tpot"] as const;
const words = ["backend", "version", "system", "parallel"] as const;

interface Row extends Readonly<Record<(typeof numbers)[number], number> & Record<(typeof words)[number], string>> {
  readonly line: number;
}

/** Finds every mistake with its line. The rows must be about one engine on one kind of GPU. */
export function readConfiguratorTable(text: string): Checked<ComputedSpeed> {
  const [heading = "", ...lines] = text.trimEnd().split(/\r?\n/);
  const names = cellsOf(heading);
  const missing = [...numbers, ...words].filter((name) => !names.includes(name));
  if (missing.length > 0)
    return { mistakes: missing.map((name) => ({ line: 1, message: missingColumn(name, names) })) };
  if (lines.length === 0) return { mistakes: [{ line: 1, message: "the table has no rows" }] };
  const mistakes: Mistake[] = [];
  const rows = lines.flatMap((line, index) => {
    const cells = cellsOf(line);
    const row = rowOf(index + 2, (name) => cells[names.indexOf(name)] ?? "");
    const wrong = numbers.filter((name) => !(row[name] > 0));
    for (const name of wrong) mistakes.push({ line: row.line, message: `"${name}" must be a number above 0` });
    return wrong.length > 0 ? [] : [row];
  });
  const [first] = rows;
  for (const name of words) {
    const other = rows.find((row) => row[name] !== first![name]);
    if (other)
      mistakes.push({
        line: other.line,
        message: `"${name}" is "${other[name]}" here and "${first![name]}" before: keep the rows of one of them`,
      });
  }
  return mistakes.length > 0 ? { mistakes } : { value: speedOf(rows), mistakes: [] };
}

function rowOf(line: number, cell: (name: string) => string): Row {
  return {
    line,
    ...(Object.fromEntries(numbers.map((name) => [name, Number(cell(name))])) as Record<
      (typeof numbers)[number],
      number
    >),
    ...(Object.fromEntries(words.map((name) => [name, cell(name)])) as Record<(typeof words)[number], string>),
  };
}

function speedOf(rows: readonly Row[]): ComputedSpeed {
  const { backend, version, system, parallel } = rows[0]!;
  const points = rows.map(({ concurrency, isl, osl, tpot }): StepPoint => {
    return { running: concurrency, contextTokens: concurrency * (isl + osl / 2), stepMs: tpot };
  });
  // A first token waits for other prompts, too. The row in which it waits least shows the speed of reading.
  const prefillTokensPerSecond = Math.max(...rows.map(({ isl, ttft }) => (1_000 * isl) / ttft));
  return { engine: backend, version, gpus: `${system} ${parallel}`, step: fitStep(points), prefillTokensPerSecond };
}

function missingColumn(name: string, names: readonly string[]): string {
  if (names.includes("(d)bs"))
    return `the column "${name}" is missing: the table separates reading of prompts from answers, which slots do not`;
  const near = nearest(name, names);
  return `the column "${name}" is missing${near === undefined ? "" : `; is "${near}" meant?`}`;
}

/** A cell with a comma stands in quotes. */
function cellsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) =>
    (quoted?.replaceAll('""', '"') ?? plain ?? "").trim(),
  );
}
