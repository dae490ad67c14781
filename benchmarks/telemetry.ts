/**
 * Measures how much the telemetry of the machine delays the agent's event loop (`npm run bench:telemetry [seconds] [rounds]`).
 * Agents take turns under the same load: without telemetry, with threads as in production, and with the library alone in a
 * thread or on the event loop.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../e2e/cluster/cluster.ts";
import { LoneAgent } from "../e2e/cluster/lone-agent.ts";
import { describeMachine, markdownTable, round } from "../e2e/cluster/measurement.ts";
import { writeResult } from "./load/result-files.ts";
import { simEngine } from "../e2e/cluster/sim-node.ts";

const seconds = Number(process.argv[2] ?? 35);
const rounds = Number(process.argv[3] ?? 3);
const streams = 16;
const itlMs = 20;
const warmMs = 3_000;
const modes = ["none", "threads", "library-thread", "loop"] as const;
type Mode = (typeof modes)[number];

/** How late the event loop was in ms, without the time in which other programs had the processor. */
interface Lateness {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
  readonly samples: number;
  readonly rssBytes: number;
}

const machine = describeMachine();
const measured: Record<Mode, Lateness[]> = { none: [], threads: [], "library-thread": [], loop: [] };
for (let n = 0; n < rounds; n++) {
  const turn = modes.map((_, at) => modes[(at + n) % modes.length]!);
  for (const mode of turn) measured[mode].push(await measure(mode));
}
report();

async function measure(mode: Mode): Promise<Lateness> {
  const file = join(tmpdir(), `weiche-bench-telemetry-${process.pid}.json`);
  await using agent = await LoneAgent.start({
    models: ["model-a"],
    slots: [{ name: "a", engines: [simEngine("model-a", { "itl-ms": itlMs })] }],
    main: "benchmarks/telemetry/measured-agent.ts",
    environment: { MEASURED_TELEMETRY: mode, MEASURED_FILE: file },
  });
  const untilMs = performance.now() + warmMs + seconds * 1_000;
  const load = Array.from({ length: streams }, async () => {
    while (performance.now() < untilMs) await agent.chat("model-a", "sim:tokens=100");
  });
  await sleep(warmMs);
  await said(agent, file);
  await sleep(seconds * 1_000 - 1_000);
  const lateness = await said(agent, file);
  await Promise.all(load);
  console.log(mode, JSON.stringify(lateness));
  return lateness;
}

async function said(agent: LoneAgent, file: string): Promise<Lateness> {
  agent.program.kill("SIGUSR2");
  await until("the agent to report its measurements", () => existsSync(file));
  const lateness = JSON.parse(readFileSync(file, "utf8")) as Lateness;
  rmSync(file);
  return lateness;
}

function report(): void {
  const words: Record<Mode, string> = {
    none: "without telemetry of the machine",
    threads: "with it, in threads",
    "library-thread": "the library's readings in a thread",
    loop: "the library's readings on the event loop",
  };
  const each = (mode: Mode, key: keyof Lateness) => measured[mode].map((one) => round(one[key])).join(" · ");
  writeResult("telemetry", machine, { seconds, rounds, streams, itlMs, measured }, [
    `How late the agent's event loop is, in ms, apart from the time in which other programs had the processor: ${rounds} rounds of ${seconds} s each, in turn; ${streams} streams of a simulated vLLM, a token each ${itlMs} ms; router end, engine and agent share the machine. The machine is read each 15 s.`,
    "",
    ...markdownTable(
      ["", "p50", "p99", "p99.9", "longest", "memory, MiB"],
      modes.map((mode) => [
        words[mode],
        ...(["p50", "p99", "p999", "max"] as const).map((key) => each(mode, key)),
        measured[mode].map(({ rssBytes }) => Math.round(rssBytes / 2 ** 20)).join(" · "),
      ]),
    ),
  ]);
}
