/**
 * Sends an hour of load through a real router and agent with simulated engines, and through the simulation of the slot.
 * Compares the waits. `WEICHE_SECONDS` sets the duration, `WEICHE_TRACES` a folder with ServeGen's days.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { asId, type AccountId, type ModelId } from "@weiche/shared/ids.ts";
import { transition } from "@weiche/node-agent/src/slots/slot.ts";
import { askStream, type Answer, type Client } from "../cluster/api-client.ts";
import { Cluster } from "../cluster/cluster.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { clients, dayMs, readServegen } from "../sim/policy/loads.ts";
import { policies } from "../sim/policy/policies.ts";
import { runPolicy } from "../sim/policy/policy-run.ts";
import { tokensPerSecond, type Arrival } from "../sim/policy/arrival.ts";

const seconds = Number(process.env["WEICHE_SECONDS"] ?? 3_600);
const traces = process.env["WEICHE_TRACES"];
const places = 16;
const wakeMs = 8_000;
/** A package bounds the concurrent requests of an account. */
const accounts = 8;
const toleratedShare = 0.1;

/** The busiest part of the day, from 2 p.m. on. */
function loadOf(): readonly Arrival[] {
  const models = { small: 0.32, mid: 0.63, large: 0.05 };
  const day =
    (traces !== undefined && readServegen(traces, "servegen-day5-0.25")) ||
    clients({ perSecond: 0.3, models, random: createRandom(1) });
  const fromMs = (14 / 24) * dayMs;
  const within = day.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + 1_000 * seconds);
  const names = [...new Set(within.map(({ account }) => account))];
  return within.map((one) => ({
    ...one,
    atMs: one.atMs - fromMs,
    account: asId<AccountId>(String(names.indexOf(one.account) % accounts)),
  }));
}

function ttftMsOf({ promptTokens }: Arrival): number {
  return Math.round((1_000 * promptTokens) / tokensPerSecond.prompt);
}

/** Mean time of a switch without the drain before it. */
function switchMsOf(samples: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): number {
  const grown = (series: string) => (samples.get(series) ?? 0) - (before.get(series) ?? 0);
  const sums = ["stop", "memory", "start", "probe"].map((phase) =>
    grown(`weiche_agent_switch_phase_seconds_sum{phase="${phase}",slot="a"}`),
  );
  return (1_000 * sums.reduce((total, sum) => total + sum, 0)) / grown('weiche_agent_switch_seconds_count{slot="a"}');
}

test(
  `real waits equal simulated waits within ${100 * toleratedShare} %`,
  async () => {
    const load = loadOf();
    const models = [...new Set(load.map(({ model }) => model))];
    const options = { "sleep-ms": 50, "wake-ms": wakeMs, "itl-ms": 1_000 / tokensPerSecond.completion };
    const engines = models.map((model) => ({ ...simEngine(model, options), maxConcurrent: places }));
    await using cluster = await Cluster.start({
      catalogue: catalogueOf(...models),
      agents: { "node-1": { slots: [{ name: "a", engines }] } },
    });
    const made: Client[] = [];
    for (let number = 0; number < accounts; number++) made.push(await cluster.account(`Waits-${number}`));
    const { baseUrl } = cluster;
    const ask = (model: ModelId, account: number, text: string) =>
      askStream({ baseUrl, apiKey: made[account]!.apiKey, model, text });
    // The first start of each engine is cold.
    for (const model of models) expect(await ask(model, 0, "sim:tokens=1")).toMatchObject({ ending: "whole" });
    const agent = cluster.agents.get("node-1")!;
    const before = await readSamples(agent);

    const sinceMs = performance.now();
    const answers = await Promise.all(
      load.map(async (one): Promise<readonly [Arrival, Answer]> => {
        await sleep(Math.max(0, one.atMs - (performance.now() - sinceMs)));
        const steering = `sim:tokens=${one.completionTokens},ttft=${ttftMsOf(one)}`;
        return [one, await ask(one.model, Number(one.account), steering)];
      }),
    );
    expect(answers.filter(([, { ending }]) => ending !== "whole").map(([, { error }]) => error)).toEqual([]);

    const switchMs = switchMsOf(await readSamples(agent), before);
    const waits = answers.map(([one, { firstByteMs }]) => firstByteMs! - ttftMsOf(one));
    const { limits } = policies.now;
    const simulated = runPolicy({ load, models, places, switchMs, limits, transition }).outcomes;
    const [real, virtual] = [meanOf(waits), meanOf(simulated.map(({ waitedMs }) => waitedMs!))];
    console.log(
      `${load.length} requests, switches of ${Math.round(switchMs)} ms: mean wait ${Math.round(real)} ms, simulated ${Math.round(virtual)} ms`,
    );
    expect(Math.abs(real / virtual - 1)).toBeLessThanOrEqual(toleratedShare);
  },
  1_000 * (seconds + 900),
);

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
