/** Checks an engine that serves several models at the same time. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { until } from "../../cluster/cluster.ts";
import { readSamples } from "../../cluster/metrics-text.ts";
import { dumpUsage } from "../../cluster/usage-dump.ts";
import type { Answer } from "../../cluster/api-client.ts";
import { expect, expectEqual, type Check } from "../check.ts";
import { first, shared, sharing, slotOf, type Service } from "../service.ts";
import { textOf, whole, who } from "./answers.ts";
import { longAnswer } from "./long-answer.ts";

const [base, other] = shared;

export const severalModels: readonly Check[] = [
  {
    name: "two models of one engine: both at once, without a switch, each billed by its own factor",
    boundMs: 240_000,
    notPossible: ({ several }) => (several === undefined ? "it serves one name" : undefined),
    async run(service) {
      const account = await service.account();
      const alone = whole(await service.chat(who));
      const answers = [whole(await service.chat(who, { model: base }, { account }))];
      const [pid, before] = [service.pidOf(base), await switchesOf(service)];
      const running = longAnswer(service, { model: base, max_tokens: 1_000 }, { account });
      await running.begun;
      let hasEnded = false;
      const ended = running.answer.then((answer) => ((hasEnded = true), answer));
      const meanwhile = whole(await service.stream(who, { model: other }, { account }));
      expect(!hasEnded, "an answer of the second model while the first model answers");
      answers.push(whole(await ended));
      expectEqual(await switchesOf(service), before, "the number of switches");
      expect(pid !== undefined && service.pidOf(base) === pid, "the same process");

      expectEqual(textOf(answers[0]!), textOf(alone), "the answer of the same weights under another name");
      const differs = textOf(meanwhile) !== textOf(alone);
      expectEqual(differs, service.kind.several!.differ, "whether the second model answers differently");
      const told = { [base]: tokensOf(answers), [other]: tokensOf([meanwhile]) };
      const bills = async () => JSON.stringify(await billsOf(service, account.accountId));
      const owed = JSON.stringify(sharing.map(({ id, factor }) => [id, told[id], told[id]! * factor * 1_000]));
      await until("each model's bill", async () => (await bills()) === owed, 10_000);
      const shown = (await service.cluster.nodes())
        .flatMap(({ slots }) => slots)
        .find(({ name }) => name === slotOf(base));
      expectEqual(shown?.active, base, "the active model of weiche nodes");
      return differs ? "the second model is an adapter" : "the second model is a second name";
    },
  },
  {
    name: "check-config refuses a model that the engine's command does not serve, and names the flag",
    notPossible: ({ several }) => (several === undefined ? "it serves one name" : undefined),
    async run(service) {
      const { served, unserved } = service.kind.several!;
      expectEqual(
        (await mistakesOf(service, served(shared))).join("; "),
        "",
        "the mistakes of the served configuration",
      );
      const mistakes = await mistakesOf(service, unserved(shared));
      expect(mistakes.length === 1 && mistakes[0]!.includes("--"), "one mistake that names a flag", mistakes);
      return mistakes[0]!;
    },
  },
];

function tokensOf(answers: readonly Answer[]): number {
  return answers.reduce((sum, { usage }) => sum + usage!.total_tokens, 0);
}

async function switchesOf({ cluster }: Service): Promise<number | undefined> {
  return (await readSamples([...cluster.agents.values()][0]!)).get(
    `weiche_agent_switch_seconds_count{slot="${slotOf(first)}"}`,
  );
}

/** Returns tokens and thousandths of credits of each model that the account used. */
async function billsOf({ cluster }: Service, accountId: string): Promise<(string | number)[][]> {
  const own = (await dumpUsage(cluster)).filter((record) => record.accountId === accountId);
  return sharing.map(({ id }) => {
    const records = own.filter(({ model }) => model === id);
    const sum = (of: (record: (typeof own)[number]) => number) =>
      records.reduce((total, record) => total + of(record), 0);
    return [
      id,
      sum(({ promptTokens, completionTokens }) => promptTokens + completionTokens),
      sum(({ credits }) => Number(credits)),
    ];
  });
}

/** Runs `weiche-agent check-config` on a file with this engine. */
async function mistakesOf({ cluster }: Service, engine: object): Promise<string[]> {
  const file = join(cluster.directory, "several.yaml");
  writeFileSync(file, stringify({ node: "n", slots: [{ name: "a", engines: [engine] }] }));
  const program = join(import.meta.dirname, "../../../node-agent/bin/weiche-agent.js");
  const run = promisify(execFile)(process.execPath, [program, "check-config", file, "--json"]);
  // Mistakes end it with 1.
  const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
  return (JSON.parse(stdout) as { mistakes: { message: string }[] }).mistakes.map(({ message }) => message);
}
