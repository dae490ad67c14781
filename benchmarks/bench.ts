/**
 * Compares router, agent and both together with other proxies on this machine (`npm run bench`). Writes a report, all numbers
 * and charts to `benchmarks/results/<date>-<machine>/`, and the table of benchmarks/README.md to `results/latest.md`.
 *
 *   --quick                 the most telling scenarios, two rounds, under three minutes; writes into a folder of its own
 *   --rounds N --seed N     five, and by the clock
 *   --only A,B              scenarios by name
 *   --programs A,B          programs by name
 *   --scale                 instead: many streams for long, through two agents
 *                           [--streams 10000 --minutes 10 --routers 1 --gap 2, in seconds between two tokens]
 *   --against COMMIT        instead: by how much the ratios are worse than with the code of that commit
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { resultsDirectory, resultsOf, writePage } from "./load/result-files.ts";
import { changeLines, compareCode } from "./load/code-comparison.ts";
import { checkOut } from "../e2e/cluster/committed-code.ts";
import { endDescendants } from "../e2e/cluster/processes.ts";
import { chartsOf, readmeTable, reportPage, type BenchResult } from "./load/report.ts";
import { checkNames, runBench, warmSeconds } from "./load/run-bench.ts";
import { runScale, type ScaleOptions } from "./load/scale.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    seed: { type: "string" },
    only: { type: "string", default: "" },
    programs: { type: "string", default: "" },
    scale: { type: "boolean", default: false },
    against: { type: "string" },
    streams: { type: "string", default: "10000" },
    minutes: { type: "string", default: "10" },
    routers: { type: "string", default: "1" },
    gap: { type: "string", default: "2" },
  },
});
const names = (list: string) => list.split(",").filter((name) => name !== "");
const say = (line: string) => console.log(line);

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    endDescendants();
    process.exit(130);
  });
try {
  if (values.scale) await runScale(scaleOptions(), say);
  else if (values.against !== undefined) await compare(values.against, Number(values.seed ?? 1));
  else {
    const options = {
      quick: values.quick,
      rounds: Number(values.rounds ?? (values.quick ? 2 : 5)),
      warmSeconds: values.quick ? warmSeconds.quick : warmSeconds.whole,
      seed: Number(values.seed ?? Date.now() % 1_000_000),
      scenarios: names(values.only),
      programs: names(values.programs),
    };
    checkNames(options);
    write(await runBench(options, say), options.quick || options.scenarios.length + options.programs.length > 0);
  }
} catch (error) {
  console.error((error as Error).message);
  endDescendants();
  process.exitCode = 1;
}

function scaleOptions(): ScaleOptions {
  const { streams, minutes, routers, gap } = values;
  return {
    streams: Number(streams),
    minutes: Number(minutes),
    routers: Number(routers),
    gapSeconds: Number(gap),
  };
}

/** Compares once. The nightly comparison runs up to three times, which proves more. */
async function compare(commit: string, seed: number): Promise<void> {
  say(`installing the code of ${commit} …`);
  using committed = await checkOut(commit);
  const changes = await compareCode(committed, seed, say);
  console.log([`\nworse than ${commit} by a factor of:`, ...changeLines(changes)].join("\n"));
}

/** Writes a partial bench into a separate folder, so that it never replaces a whole bench. */
function write(result: BenchResult, isPart: boolean): void {
  const directory = join(resultsOf(result.date), isPart ? "raw" : "");
  writePage(directory, { "report.md": reportPage(result), "results.json": result });
  for (const [file, svg] of chartsOf(result)) writeFileSync(join(directory, file), svg);
  if (!isPart) writeFileSync(join(resultsDirectory, "latest.md"), readmeTable(result));
}
