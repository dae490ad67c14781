/** The benches that are programs of their own, run one after the other; each says what it measured as JSON. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { resultsOf } from "../cluster/result.ts";
import type { Sample } from "./campaign.ts";
import { onCore } from "./native/run-load.ts";

const root = join(import.meta.dirname, "../..");

export interface SubBenches {
  readonly micro?: Readonly<Record<string, number>>;
  readonly samples: readonly Sample[];
}

export async function subBenches(
  isAsked: (name: string) => boolean,
  cores: { readonly load: number; readonly test: number },
  say: (line: string) => void,
): Promise<SubBenches> {
  const samples: Sample[] = [];
  let micro: Record<string, number> | undefined;
  const attempt = (name: string, work: () => void) => {
    if (!isAsked(name)) return;
    try {
      work();
      say(`${name} is done`);
    } catch (error) {
      say(`${name}: ${(error as Error).message}`);
    }
  };
  attempt("micro", () => {
    micro = JSON.parse(run("benchmarks/load/micro.ts", [], cores.test)) as Record<string, number>;
  });
  attempt("usage", () => {
    const said = JSON.parse(run("benchmarks/usage-ledger.ts", ["60000"])) as {
      recordsPerSecond: number;
      loopBusyMs: { max: number };
    };
    const values = { recordsPerSecond: said.recordsPerSecond, loopBusyMaxMs: said.loopBusyMs.max };
    samples.push({ scenario: "usage", program: "weiche", round: 1, values });
  });
  attempt("switch", () => {
    run("benchmarks/switch.ts", ["100"]);
    const file = join(resultsOf(Temporal.Now.plainDateISO().toString()), "switch.json");
    const said = JSON.parse(readFileSync(file, "utf8")) as { oursMs: { p50: number; p99: number } };
    const values = { oursP50Ms: said.oursMs.p50, oursP99Ms: said.oursMs.p99 };
    samples.push({ scenario: "switch", program: "weiche", round: 1, values });
  });
  return { samples, ...(micro && { micro }) };
}

/** Its output. Without a core: wherever the system puts its processes. */
function run(file: string, args: readonly string[], core?: number): string {
  const [command, all] = onCore(core, process.execPath, [join(root, file), ...args]);
  return execFileSync(command, all, { encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "inherit"] });
}
