/**
 * Switches two models on one slot under load, with every real engine found on this machine. `WEICHE_SWITCHES` sets the
 * number of switches.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Answer } from "../cluster/api-client.ts";
import { residentBytes } from "../cluster/kept-memory.ts";
import { readSamples } from "../cluster/metrics-text.ts";
import { findEngines } from "./engine-kinds.ts";
import { first, second, Service } from "./service.ts";

const switchesWanted = Number(process.env["WEICHE_SWITCHES"] ?? 200);
const models = [first, second] as const;
const questions = ["Who are you?", "What's the capital of Norway?", "Count from 1 to 100."];
/** The number of clients per model. Few, because the engines have 4 places. */
const clients = 2;

const found = await findEngines();

test.each(found.map((engine) => [engine.name, engine] as const))(
  `during ${switchesWanted} switches of %s under load, no answer is cut or wrong, and the memory is returned [B1]`,
  async (_, engine) => {
    if ("missing" in engine) return console.log(`${engine.name} was not found: ${engine.missing}`);
    await using service = await Service.start(engine);
    const expected = await referencesOf(service);
    const before = await switchesOf(service);
    const bytes: number[] = [];
    const wrong: unknown[] = [];
    let [isOver, answers] = [false, 0];
    const load = models.flatMap((model) =>
      Array.from({ length: clients }, async (_each, client) => {
        const account = await service.account();
        while (!isOver) {
          const question = questions[(answers + client) % questions.length]!;
          const answer = await service.stream(question, { model }, { account });
          answers++;
          if (answer.ending !== "whole" || textOf(answer) !== expected.get(`${model} ${question}`)) wrong.push(answer);
          await sleep(500);
        }
      }),
    );
    const untilMs = performance.now() + switchesWanted * (engine.startMs / 2 + 5_000);
    while ((await switchesOf(service)) - before < switchesWanted && performance.now() < untilMs) {
      const pids = models.map((model) => service.pidOf(model)).filter((pid) => pid !== undefined);
      bytes.push(pids.reduce((sum, pid) => sum + residentBytes(pid), 0));
      await sleep(100);
    }
    isOver = true;
    await Promise.all(load);

    const switches = (await switchesOf(service)) - before;
    const [early, late] = [bytes.slice(0, bytes.length >> 2), bytes.slice(-(bytes.length >> 2))].map(mostOf) as [
      number,
      number,
    ];
    const mebibytes = [early, late].map((most) => Math.round(most / 2 ** 20));
    console.log(`${engine.name}: ${switches} switches, ${answers} answers, at most ${mebibytes.join(" and ")} MiB`);
    expect(switches).toBeGreaterThanOrEqual(switchesWanted);
    expect(wrong).toEqual([]);
    expect(answers).toBeGreaterThan(switchesWanted);
    expect(late, "two engines at once would need twice the memory").toBeLessThan(1.5 * early);
  },
  7_200_000,
);

/** Asks each model each question alone and returns the answers. */
async function referencesOf(service: Service): Promise<ReadonlyMap<string, string>> {
  const references = new Map<string, string>();
  for (const model of models)
    for (const question of questions) {
      const answer = await service.stream(question, { model });
      expect(answer.ending).toBe("whole");
      references.set(`${model} ${question}`, textOf(answer));
    }
  return references;
}

function textOf({ choices }: Answer): string {
  return choices.map(({ content }) => content).join("");
}

async function switchesOf({ cluster }: Service): Promise<number> {
  const [agent] = cluster.agents.values();
  const samples = [...(await readSamples(agent!))];
  const own = samples.filter(([series]) => series.startsWith('weiche_agent_switch_seconds_count{slot="chat"'));
  return own.reduce((sum, [, value]) => sum + value, 0);
}

function mostOf(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
