/** Switches two models on one slot under load. `WEICHE_SWITCHES` sets the number of switches. */
import { setTimeout as sleep } from "node:timers/promises";
import { bytesOfGroups } from "../../cluster/kept-memory.ts";
import { readSamples } from "../../cluster/metrics-text.ts";
import { expect, type Check } from "../check.ts";
import { first, second, type Service } from "../service.ts";
import { counting, textOf, whole, who } from "./answers.ts";

const models = [first, second] as const;
const questions = [who, "What's the capital of Norway?", counting];
/** The number of clients per model. Few, because the engines have 4 places. */
const clients = 2;
const pauseMs = 500;

export const switches: readonly Check[] = [
  {
    name: "many switches under load: no answer is cut or wrong, and the memory is returned",
    isLong: true,
    boundMs: 7_200_000,
    async run(service) {
      const wanted = Number(process.env["WEICHE_SWITCHES"] ?? service.kind.switches);
      const expected = await referencesOf(service);
      const before = await switchTimes(service);
      const load = underLoad(service, expected);
      const bytes: number[] = [];
      try {
        while (!load.isOver() && (await switchTimes(service)).switches - before.switches < wanted) {
          bytes.push(awakeBytes(service));
          await sleep(200);
        }
      } finally {
        await load.end();
      }
      const after = await switchTimes(service);
      const made = after.switches - before.switches;
      const quarter = bytes.length >> 2;
      const [early, late] = [mostOf(bytes.slice(0, quarter)), mostOf(bytes.slice(-quarter))];
      expect(load.wrong.length === 0, "whole answers with the text that the model gives alone", load.wrong[0]);
      expect(load.answers() > made, "more answers than switches", load.answers());
      expect(late < 1.5 * early, "the memory of one engine, also after all switches", [early, late]);
      const mebibytes = [early, late].map((most) => Math.round(most / 2 ** 20)).join(" and ");
      const phases = Object.entries(after.phases).map(([phase, seconds]) => {
        const mean = (seconds - (before.phases[phase] ?? 0)) / made;
        return `${phase} ${mean.toPrecision(2)} s`;
      });
      return `${made} switches, ${load.answers()} answers; at most ${mebibytes} MiB early and late; mean ${phases.join(", ")}`;
    },
  },
];

/** Asks both models until `end`, or until an answer is wrong. */
function underLoad(service: Service, expected: ReadonlyMap<string, string>) {
  let [isOver, answers] = [false, 0];
  const wrong: object[] = [];
  const client = async (model: string, number: number) => {
    const account = await service.account();
    for (let at = number; !isOver; at++) {
      const question = questions[at % questions.length]!;
      const answer = await service.stream(question, { model }, { account });
      answers++;
      const [seen, wanted] = [textOf(answer), expected.get(`${model} ${question}`)];
      if (answer.ending !== "whole" || seen !== wanted) {
        const { status, ending, error } = answer;
        wrong.push({ model, question, status, ending, error, seen, wanted });
        isOver = true;
      }
      await sleep(pauseMs);
    }
  };
  const all = models.flatMap((model) => Array.from({ length: clients }, (_, number) => client(model, number)));
  // A client that throws must not leave the others running.
  const ended = Promise.all(all).finally(() => (isOver = true));
  ended.catch(() => {});
  return {
    wrong,
    answers: () => answers,
    isOver: () => isOver,
    end: async () => {
      isOver = true;
      await ended;
    },
  };
}

/** Asks each model each question alone and returns the answers. */
async function referencesOf(service: Service): Promise<ReadonlyMap<string, string>> {
  const references = new Map<string, string>();
  for (const model of models)
    for (const question of questions)
      references.set(`${model} ${question}`, textOf(whole(await service.stream(question, { model }))));
  return references;
}

/** Returns the memory of the engine that runs. Throws if two run at once. */
function awakeBytes(service: Service): number {
  const groups = bytesOfGroups();
  const pids = models.map((model) => service.pidOf(model)).filter((pid) => pid !== undefined);
  // The agent starts each engine as a group of its own. vLLM has processes beside the first.
  const running = pids.map((pid) => groups.get(pid) ?? 0).filter((bytes) => bytes > 0);
  expect(running.length <= 1, "one engine at a time", pids);
  return running[0] ?? 0;
}

async function switchTimes({ cluster }: Service): Promise<{ switches: number; phases: Record<string, number> }> {
  const samples = await readSamples([...cluster.agents.values()][0]!);
  const phases: Record<string, number> = {};
  for (const [series, seconds] of samples) {
    const [, phase] = /^weiche_agent_switch_phase_seconds_sum\{phase="(\w+)",slot="chat"\}$/.exec(series) ?? [];
    if (phase !== undefined) phases[phase] = seconds;
  }
  return { switches: samples.get('weiche_agent_switch_seconds_count{slot="chat"}') ?? 0, phases };
}

function mostOf(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
