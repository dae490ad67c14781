/** Runs benches that are separate programs. Each writes or prints its results as JSON. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { today, type Quantiles } from "../../e2e/cluster/measurement.ts";
import { resultsOf } from "./result-files.ts";
import { Arena } from "../../e2e/starvation/arena.ts";
import { attacks } from "../../e2e/starvation/attacks.ts";
import { attempt, type Sample } from "./campaign.ts";
import { onCore } from "./native/run-load.ts";

const root = join(import.meta.dirname, "../..");

export async function subBenches(
  isAsked: (name: string) => boolean,
  testCore: number,
  say: (line: string) => void,
): Promise<{ readonly micro?: Readonly<Record<string, number>>; readonly samples: readonly Sample[] }> {
  let micro: Record<string, number> | undefined;
  const samples: Sample[] = [];
  const measured = (scenario: string, values: Sample["values"]) =>
    samples.push({ scenario, program: "weiche", round: 1, values });
  const benches = {
    micro: () => (micro = JSON.parse(run("benchmarks/load/micro.ts", [], testCore)) as typeof micro),
    usage() {
      const said = JSON.parse(run("benchmarks/usage-ledger.ts", ["60000"])) as UsageResult;
      measured("usage", { recordsPerSecond: said.recordsPerSecond, loopBusyMaxMs: said.loopBusyMs.max });
    },
    switch() {
      run("benchmarks/switch.ts", ["100"]);
      const said = JSON.parse(readFileSync(join(resultsOf(today()), "switch.json"), "utf8")) as SwitchResult;
      measured("switch", { oursP99Ms: said.oursMs.p99, aboveWakeP99Ms: said.aboveWakeMs.p99 });
    },
    async hostile() {
      await using arena = await Arena.open();
      for (const attack of attacks) {
        const { quiet, attacked, cut } = await arena.run([attack], { quietMs: 10_000, attackMs: 20_000 });
        const values = { gapBeforeP99Us: quiet.p99Ms * 1_000, gapP99Us: attacked.p99Ms * 1_000, goodCut: cut.length };
        samples.push({ scenario: "hostile", program: attack.name, round: 1, values });
      }
    },
  };
  for (const [name, bench] of Object.entries(benches).filter(([each]) => isAsked(each)))
    await attempt({ say }, name, async () => {
      await bench();
      say(`${name} is done`);
    });
  return { samples, micro };
}

interface UsageResult {
  readonly recordsPerSecond: number;
  readonly loopBusyMs: Quantiles;
}

interface SwitchResult {
  readonly oursMs: Quantiles;
  readonly aboveWakeMs: Quantiles;
}

/** Runs a program and returns its output. If `core` is undefined, it may run on any core. */
function run(file: string, args: readonly string[], core?: number): string {
  const [command, all] = onCore(core, process.execPath, [join(root, file), ...args]);
  return execFileSync(command, all, { encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "inherit"] });
}
