/**
 * Measures Weiche's own share of a switch (`npm run bench:switch [switches]`). One slot has two models that sleep and wake,
 * and one client asks for the sleeping model. The result is the time from the request to the first byte of the answer, minus
 * the time that the new engine needs by its journal to wake and to make its first token. A second result also subtracts the
 * old engine's falling asleep and the probe's token. The rest is agent, router, HTTP and this client.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Cluster, reachableDirectory } from "../e2e/cluster/cluster.ts";
import { describeMachine, markdownTable, quantiles, round, type Quantiles } from "../e2e/cluster/measurement.ts";
import { writeResult } from "./load/result-files.ts";
import { catalogueOf, simEngine } from "../e2e/cluster/sim-node.ts";
import { askStream, type Answer } from "../e2e/cluster/api-client.ts";
import type { JournalLine } from "../e2e/sim-engine/ledger.ts";

const switches = Number(process.argv[2] ?? 200);
const goalMs = 50;
const models = ["model-a", "model-b"] as const;
/** Below the 150 requests a minute that a package allows. */
const requestsPerAccount = 120;

interface Switch {
  readonly totalMs: number;
  readonly engineMs: number;
  readonly oursMs: number;
  /** The whole time minus waking and the first token of the answer, as a client counts. */
  readonly aboveWakeMs: number;
  /** The parts of `oursMs` in order of time. */
  readonly stagesMs: Readonly<Record<string, number>>;
}

const machine = describeMachine();
const directory = reachableDirectory("weiche-bench-switch-");
const journal = join(directory, "journal");
const options = { journal, "sleep-ms": 20, "wake-ms": 20, "ttft-ms": 10 };
const cluster = await Cluster.start({
  catalogue: catalogueOf(...models),
  agents: {
    "node-1": { slots: [{ name: "a", minResidencySeconds: 0, engines: models.map((m) => simEngine(m, options)) }] },
  },
});
try {
  const apiKeys: string[] = [];
  for (let n = 0; n < (switches + 4) / requestsPerAccount; n++)
    apiKeys.push((await cluster.account(`Bench-${n}`)).apiKey);
  let asked = 0;
  const ask = async (model: string): Promise<Answer> => {
    const apiKey = apiKeys[Math.floor(asked++ / requestsPerAccount)]!;
    const seen = await askStream({ baseUrl: cluster.baseUrl, apiKey, model, text: "sim:tokens=2" });
    if (seen.ending !== "whole") throw new Error(`a request was not answered: ${JSON.stringify(seen)}`);
    return seen;
  };
  for (const model of [...models, ...models]) await ask(model); // both engines have started, and the code is compiled
  const seen: Answer[] = [];
  for (let n = 0; n < switches; n++) seen.push(await ask(models[n % 2]!));
  const lines = readFileSync(journal, "utf8").trim().split("\n");
  const written = lines.map((line) => JSON.parse(line) as JournalLine);
  report(seen.map((one) => measure(one, written)));
} finally {
  await cluster[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
}

function report(measured: readonly Switch[]): void {
  const of = (time: (one: Switch) => number) => quantiles(measured.map(time));
  const [totalMs, engineMs] = [of((one) => one.totalMs), of((one) => one.engineMs)];
  const [oursMs, aboveWakeMs] = [of((one) => one.oursMs), of((one) => one.aboveWakeMs)];
  const stages = Object.keys(measured[0]!.stagesMs);
  const stagesMs = Object.fromEntries(stages.map((stage) => [stage, of((one) => one.stagesMs[stage]!)]));
  const row = (what: string, { p50, p99, max }: Quantiles) => [what, p50, p99, max];
  writeResult("switch", machine, { switches, totalMs, engineMs, oursMs, aboveWakeMs, stagesMs, goalMs }, [
    `${switches} switches between two sleeping models of one slot (simulated vLLM: sleep and wake ${options["wake-ms"]} ms each, first token ${options["ttft-ms"]} ms). From a request for the sleeping model to the first byte of its answer, in ms:`,
    "",
    ...markdownTable(
      ["", "p50", "p99", "max"],
      [
        row("whole", totalMs),
        row("the engines' own: sleep, wake, the probe's token, the first token", engineMs),
        row("ours: agent, router, HTTP, client", oursMs),
        ...stages.map((stage) => row(`ours, ${stage}`, stagesMs[stage]!)),
        row("whole less wake and first token only", aboveWakeMs),
      ],
    ),
    "",
    "The goal is about the last row: the whole time without the new engine's wake and first token. *Ours* also leaves out the old engine's falling asleep and the probe's token, because the engines take that time in any case.",
    "",
    `Goal: at most ${goalMs} ms at p99: ${verdict(aboveWakeMs)}; of ours alone: ${verdict(oursMs)}.`,
  ]);
}

function verdict({ p99 }: Quantiles): string {
  return p99 <= goalMs ? "met" : "missed";
}

/** Reads the engines' times during the request from their journals, exact to 1 ms. */
function measure({ id, sentAtMs, firstByteMs = NaN }: Answer, written: readonly JournalLine[]): Switch {
  const firstByteAtMs = sentAtMs + firstByteMs;
  const own = written.filter((line) => timeOf(line) >= sentAtMs - 1 && timeOf(line) <= firstByteAtMs + 1);
  const at = (event: JournalLine["event"]) => {
    const found = own.find((line) => line.event === event);
    if (!found || !("atMs" in found)) throw new Error(`no "${event}" during a switch`);
    return found.atMs;
  };
  const isRequest = (line: JournalLine) => line.event === "request";
  const answer = own.filter(isRequest).find((line) => line.id === id);
  const probe = own.filter(isRequest).find((line) => line.id !== id);
  if (!answer?.firstTokenAtMs || !probe) throw new Error("an engine did not record its events");
  const sleepMs = at("asleep") - at("falling-asleep");
  const wakeMs = at("awake") - at("waking");
  const firstTokenMs = answer.firstTokenAtMs - answer.startedAtMs;
  const engineMs = sleepMs + wakeMs + (probe.closedAtMs! - probe.startedAtMs) + firstTokenMs;
  const aboveWakeMs = round(firstByteMs - wakeMs - firstTokenMs);
  const stagesMs = {
    "request to falling asleep": at("falling-asleep") - sentAtMs,
    "asleep to waking": at("waking") - at("asleep"),
    "awake to the probe": probe.startedAtMs - at("awake"),
    "probe to the request": answer.startedAtMs - probe.closedAtMs!,
    "first token to first byte": firstByteAtMs - answer.firstTokenAtMs,
  };
  return { totalMs: firstByteMs, engineMs, oursMs: round(firstByteMs - engineMs), aboveWakeMs, stagesMs };
}

function timeOf(line: JournalLine): number {
  return "atMs" in line ? line.atMs : line.startedAtMs;
}
