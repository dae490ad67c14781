/**
 * Sends three loads of 25 minutes at the same time through a router and agents with simulated engines, each to a node of
 * its own, and asks `weiche simulate` about the same requests. `WEICHE_SECONDS` sets the duration.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Measured } from "@weiche/router/src/simulate/engine/measured.ts";
import { Histogram } from "@weiche/router/src/simulate/engine/histogram.ts";
import type { LoadRequest } from "@weiche/router/src/simulate/load.ts";
import { askStream, type Client } from "../cluster/api-client.ts";
import { Cluster } from "../cluster/cluster.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { catalogueOf, simEngine, SimNodeEngine } from "../cluster/sim-node.ts";
import { accounts, comparedLoads, engine, planOfLoad, requestsOf, simulate } from "./compared-loads.ts";

const seconds = Number(process.env["WEICHE_SECONDS"] ?? 1_500);
const retrySeconds = planOfLoad(comparedLoads[0]!, seconds, 1).retrySeconds;
const bytesPerToken = 4;

type ComparedLoad = (typeof comparedLoads)[number];

/** What one load met. Times of waits by model. */
interface Met {
  readonly waits: ReadonlyMap<string, Histogram>;
  readonly switchesPerHour: number;
  readonly refusedPercent: number;
  readonly requests: number;
}

let cluster: Cluster;

beforeAll(async () => {
  const options = {
    ...{ "sleep-ms": engine.sleepMs, "wake-ms": engine.wakeMs, "itl-ms": engine.baseMs, "ttft-ms": engine.baseMs },
    ...{ "itl-per-running-ms": engine.perRunningMs, "itl-per-thousand-ms": engine.perThousandTokensMs },
    "ttft-per-thousand-ms": engine.prefillMsPerThousand,
  };
  const agents = comparedLoads.map(({ name, models, waitersMax }) => {
    const engines = Object.keys(models).map((model) => ({
      ...simEngine(model, options),
      maxConcurrent: engine.places,
    }));
    return [name, { slots: [{ name: "a", engines, waitersMax }] }];
  });
  const models = comparedLoads.flatMap((load) => Object.keys(load.models));
  cluster = await Cluster.start({ catalogue: catalogueOf(...models), agents: Object.fromEntries(agents) });
});

afterAll(() => cluster[Symbol.asyncDispose]());

test(
  "waits and switches of three loads are within a tenth of what the simulator says, and refusals within half a point",
  async () => {
    const clients: Client[] = [];
    for (let number = 0; number < accounts; number++) clients.push(await cluster.account(`Compared-${number}`));
    const compared = await Promise.all(comparedLoads.map((load) => compare(load, clients)));
    const lines = compared.flat();
    console.log(lines.map(({ text }) => text).join("\n"));
    expect(lines.filter(({ isNear }) => !isNear).map(({ text }) => text)).toEqual([]);
  },
  1_000 * (seconds + 900),
);

async function compare(load: ComparedLoad, clients: readonly Client[]): Promise<Compared[]> {
  const { met, switchSeconds } = await run(load, clients);
  const plan = planOfLoad(load, seconds, switchSeconds);
  const simulated = metBy(simulate(plan));
  const line = (what: string, of: (one: Met) => number, tolerance: Tolerance) =>
    comparedOf(`${load.name}: ${what}`, of(met), of(simulated), tolerance);
  const quantiles = (model: string) =>
    [0.5, 0.95].map((share) =>
      line(`wait p${100 * share} in ms, ${model}`, ({ waits }) => waits.get(model)!.quantileMs(share), {
        share: 0.1,
        least: 100,
      }),
    );
  return [
    line("requests", ({ requests }) => requests, { share: 0, least: 0 }),
    ...["all", ...Object.keys(load.models).filter((model) => model === "rare-2")].flatMap(quantiles),
    line("switches per hour", ({ switchesPerHour }) => switchesPerHour, { share: 0.1, least: 0 }),
    line("refused attempts in percent", ({ refusedPercent }) => refusedPercent, { share: 0, least: 0.5 }),
  ];
}

interface Tolerance {
  /** The tolerated difference as a share of the simulated value. */
  readonly share: number;
  /** A smaller difference is tolerated in any case. */
  readonly least: number;
}

interface Compared {
  readonly text: string;
  readonly isNear: boolean;
}

function comparedOf(what: string, real: number, simulated: number, { share, least }: Tolerance): Compared {
  const isNear = Math.abs(real - simulated) <= Math.max(least, share * simulated);
  const percent = simulated === 0 ? "" : ` (${(100 * (real / simulated - 1)).toFixed(1)} %)`;
  return { text: `${what}: ${real.toFixed(2)}, simulated ${simulated.toFixed(2)}${percent}`, isNear };
}

function metBy(measured: Measured): Met {
  const { all, models, switches, totalMs } = measured;
  const waits = new Map([...models].map(([model, { wait }]) => [model, wait]));
  const switched = [...switches.values()].reduce((sum, count) => sum + count, 0);
  return {
    waits: waits.set("all", all.wait),
    switchesPerHour: (3_600_000 * switched) / totalMs,
    refusedPercent: (100 * all.refused) / all.attempts,
    requests: all.served,
  };
}

/** Sends the load. Also returns the mean time of a switch without the drain before it, as a profile would have it. */
async function run(load: ComparedLoad, clients: readonly Client[]) {
  const plan = planOfLoad(load, seconds, 1);
  const attempts = { all: 0, refused: 0 };
  const sentAtMs: number[] = [];
  const sinceMs = performance.now();
  await Promise.all(
    requestsOf(plan).map(async (request, mark) => {
      await sleep(Math.max(0, request.atMs - (performance.now() - sinceMs)));
      sentAtMs[mark] = Date.now();
      await askUntilServed(request, mark, clients, attempts);
    }),
  );
  const tookMs = performance.now() - sinceMs;
  const samples = await readSamples(cluster.agents.get(load.name)!);
  const switches = samples.get('weiche_agent_switch_seconds_count{slot="a"}')!;
  const phases = ["stop", "memory", "start", "probe"].map((phase) =>
    samples.get(`weiche_agent_switch_phase_seconds_sum{phase="${phase}",slot="a"}`)!,
  );
  const waits = await waitsOf(load, sentAtMs);
  const met: Met = {
    ...{ waits, switchesPerHour: (3_600_000 * switches) / tookMs, requests: waits.get("all")!.count },
    refusedPercent: (100 * attempts.refused) / attempts.all,
  };
  return { met, switchSeconds: phases.reduce((sum, took) => sum + took, 0) / switches };
}

/** A refused client comes back after the times of the plan, or after `retry-after`. */
async function askUntilServed(
  { model, account, inputTokens, outputTokens }: LoadRequest,
  mark: number,
  clients: readonly Client[],
  attempts: { all: number; refused: number },
): Promise<void> {
  const client = clients[Number(account.slice("account-".length))]!;
  const steering = `sim:tokens=${outputTokens},mark=${mark} `;
  const text = steering.padEnd(bytesPerToken * inputTokens, "x");
  for (const ownSeconds of [...retrySeconds, 0]) {
    attempts.all++;
    const { ending, status, retryAfterSeconds, error } = await askStream({ ...client, model, text });
    if (ending === "whole") return;
    if (status !== 503) throw new Error(`the attempt ended ${ending} with ${status}: ${JSON.stringify(error)}`);
    attempts.refused++;
    await sleep(1_000 * Math.max(ownSeconds, retryAfterSeconds!));
  }
  throw new Error("a client gave up");
}

/** From the client's first attempt until its request was at the engine. The clocks are those of one machine. */
async function waitsOf(
  { name, models }: ComparedLoad,
  sentAtMs: readonly number[],
): Promise<ReadonlyMap<string, Histogram>> {
  const all = new Histogram();
  const waits = new Map([["all", all]]);
  for (const model of Object.keys(models)) {
    const wait = new Histogram();
    const requests = await new SimNodeEngine(join(cluster.directory, name), "a", model).requests();
    for (const { mark, startedAtMs } of requests)
      if (mark !== undefined) wait.add(Math.max(0, startedAtMs - sentAtMs[mark]!));
    all.addAll(wait);
    waits.set(model, wait);
  }
  return waits;
}
