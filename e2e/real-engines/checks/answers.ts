/** Checks answers: their two forms, their cost and the parameters that affect them. */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../cluster/cluster.ts";
import type { Answer } from "../../cluster/api-client.ts";
import { expect, expectEqual, type Check } from "../check.ts";
import { places } from "../engine-kinds.ts";
import { served } from "./served.ts";
import { canary, first, forms, type Service } from "../service.ts";

export const counting = "Count from 1 to 100.";
export const who = "Who are you?";
export const story = "Tell me a very long story about a dragon.";

/** Returns a whole answer, or throws with its actual ending. */
export function whole(answer: Answer): Answer {
  const { status, ending, error } = answer;
  expect(ending === "whole" && status === 200, "a whole answer", { status, ending, error });
  return answer;
}

export const answers: readonly Check[] = [
  {
    name: "ready: started, proven and in service",
    boundMs: 120_000,
    async run(service) {
      const sinceMs = performance.now();
      await served(service);
      expect(service.pidOf(first) !== undefined, "an engine that the agent started");
      return `first answer after ${Math.round(performance.now() - sinceMs)} ms, start included`;
    },
  },
  {
    name: "a chat says the same as one body and as a stream",
    async run(service) {
      const [body, stream] = [whole(await service.chat(who)), whole(await service.stream(who))];
      const [one, other] = [body.choices[0]!, stream.choices[0]!];
      expect(one.content.length > 10, "an answer", one.content);
      expectEqual(other.content, one.content, "the streamed text");
      expectEqual(other.finish, "stop", "finish_reason");
      expectEqual(JSON.stringify(bare(stream)), JSON.stringify(bare(body)), "the streamed usage");
    },
  },
  {
    name: "usage and bill are the engine's own counters, to the token",
    async run(service) {
      const account = await service.account();
      whole(await service.chat(who, {}, { account }));
      await service.idle();
      await sleep(100);
      const before = await service.counters();
      const asked = await Promise.all([
        ...[service.chat(`${who} ${canary}`, {}, { account }), service.stream(counting, {}, { account })],
        service.chat(story, { max_tokens: 50 }, { account }),
      ]);
      asked.push(await service.stream("What's the capital of Norway?", { reasoning_effort: "low" }, { account }));
      asked.push(await service.chat(counting, { stop: ["50"] }, { account }));
      const told = { prompt: 0, completion: 0 };
      for (const { usage } of asked.map(whole)) {
        told.prompt += usage!.prompt_tokens;
        told.completion += usage!.completion_tokens!;
      }
      await service.idle();
      const after = await service.counters();
      expectEqual(told.prompt, after.prompt - before.prompt, "the sum of prompt_tokens");
      expectEqual(told.completion, after.completion - before.completion, "the sum of completion_tokens");
      const warm = whole(await service.chat(who, {}, { account })).usage!;
      // This request was sent once before and once after the counters were read. Both are billed.
      const billed = told.prompt + told.completion + 2 * warm.total_tokens;
      const isBilled = async () => (await tokensBilled(service, account.accountId)) === billed;
      await until("the bill to be the sum", isBilled, 10_000);
      return `${told.prompt} + ${told.completion} tokens in ${asked.length} answers`;
    },
  },
  ...[1, 4, 64].map((count): Check => ({
    name: `${count} stop string${count > 1 ? "s" : ""}`,
    async run(service) {
      const others = Array.from({ length: count - 1 }, (_, at) => `never ${at}`);
      for (const form of forms) {
        const answer = whole(await service.inForm(form, counting, { stop: [...others, "15"] }));
        const { content, finish } = answer.choices[0]!;
        expect(content.includes("14") && !content.includes("15"), "text that ends before the string", content);
        expectEqual(finish, "stop", "finish_reason");
      }
    },
  })),
  {
    name: "max_tokens ends an answer at the token",
    async run(service) {
      for (const limit of [1, 3]) {
        const { usage, choices } = whole(await service.chat(counting, { max_tokens: limit }));
        expectEqual(usage!.completion_tokens, limit, "completion_tokens");
        expectEqual(choices[0]!.finish, "length", "finish_reason");
      }
    },
  },
  {
    name: "n = 2: two answers, both counted",
    async run(service) {
      await service.idle();
      const before = await service.counters();
      for (const form of forms) {
        const asked = { n: 2, temperature: 0.7, max_tokens: 20 };
        const { choices, usage } = whole(await service.inForm(form, counting, asked));
        expectEqual(choices.length, 2, "the number of answers");
        const areWhole = choices.every(({ content, finish }) => content !== "" && finish !== null);
        expect(areWhole, "both with text and an end");
        expectEqual(usage!.completion_tokens, 40, "completion_tokens");
      }
      await service.idle();
      const after = await service.counters();
      expectEqual(after.completion - before.completion, 80, "what the engine counted");
    },
  },
  {
    name: `n beyond the ${places} places: answered, or a 400 that names n`,
    async run(service) {
      const answer = await service.chat(who, { n: places + 1, temperature: 0.7, max_tokens: 5 });
      if (answer.status === 200) {
        expectEqual(answer.choices.length, places + 1, "the number of answers");
        return "answered";
      }
      expectEqual(answer.status, 400, "the status");
      expectEqual(answer.error?.param, "n", "param");
      return answer.error!.message;
    },
  },
  {
    name: "logprobs with alternatives",
    async run(service) {
      for (const form of forms) {
        const asked = { logprobs: true, top_logprobs: 2, max_tokens: 4 };
        const { choices, usage } = whole(await service.inForm(form, who, asked));
        const { logprobs } = choices[0]!;
        expectEqual(logprobs.length, usage!.completion_tokens, "one entry per token");
        const haveTwo = logprobs.every(({ logprob, top_logprobs: top }) => logprob <= 0 && top.length === 2);
        expect(haveTwo, "two alternatives", logprobs);
      }
    },
  },
  {
    name: "a seed repeats an answer",
    async run(service) {
      const ask = async (seed: number) => {
        const answer = await service.chat(story, { temperature: 1.5, seed, max_tokens: 60 });
        return whole(answer).choices[0]!.content;
      };
      const [one, again, other] = [await ask(7), await ask(7), await ask(8)];
      expectEqual(again, one, "the answer with the same seed");
      expect(other !== one, "another answer with another seed", other);
    },
  },
  {
    name: "completions continue a text",
    async run(service) {
      const asked = { model: first, prompt: "The capital of", max_tokens: 8, temperature: 0 };
      const { choices, usage } = whole(await service.ask("/completions", asked));
      expect(choices[0]!.content.length > 0, "text", choices);
      expect(usage!.completion_tokens! > 0 && usage!.completion_tokens! <= 8, "at most 8 tokens", usage);
    },
  },
  {
    name: "thinking is on and off as asked, and never in the text",
    async run(service) {
      const question = "What's the capital of Norway?";
      for (const form of forms) {
        const on = whole(await service.inForm(form, question, { reasoning_effort: "low" })).choices[0]!;
        expect(on.reasoning.trim() !== "", "reasoning_content", on);
        const off = whole(await service.inForm(form, question, { reasoning_effort: "none" })).choices[0]!;
        expectEqual(off.reasoning, "", "reasoning_content when it is off");
        const silent = whole(await service.inForm(form, question)).choices[0]!;
        expectEqual(silent.reasoning, "", "reasoning_content when nothing is said of it");
        for (const { content } of [on, off, silent]) {
          const isPlain = content.trim() !== "" && content === content.trimStart() && !/<\/?think>/.test(content);
          expect(isPlain, "plain text", content);
        }
      }
      const cut = whole(await service.chat(question, { reasoning_effort: "low", max_tokens: 4 })).choices[0]!;
      expect(cut.isNull && cut.finish === "length", "no content where max_tokens ends the thinking", cut);
    },
  },
];

/** Returns the usage that both forms of an answer share. Only the second may find a cached prefix. */
function bare({ usage }: Answer): object {
  const { prompt_tokens, completion_tokens, total_tokens } = usage!;
  return { prompt_tokens, completion_tokens, total_tokens };
}

async function tokensBilled(service: Service, accountId: string): Promise<number> {
  const { rows } = (await service.cluster.weiche("usage", "--account", accountId, "--by", "model")) as {
    rows: { promptTokens: number; completionTokens: number }[];
  };
  return rows.reduce((sum, { promptTokens, completionTokens }) => sum + promptTokens + completionTokens, 0);
}

/** Returns the texts of all answers of one request, one after the other. */
export function textOf({ choices }: Answer): string {
  return choices.map(({ content }) => content).join("");
}
