/** Checks that requests which an engine cannot serve are refused with Weiche's own errors. */
import { expect, expectEqual, expectOverflow, type Check } from "../check.ts";
import { inputTokens, windowTokens } from "../engine-kinds.ts";
import { embedder, forms } from "../service.ts";
import { who } from "./answers.ts";

const dot =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

export const refusals: readonly Check[] = [
  {
    name: "a prompt that is too long: 400 with both counts",
    async run(service) {
      const counts = new Set<number>();
      for (const form of forms) {
        const answer = await service.inForm(form, "the cat ".repeat(windowTokens));
        const [window, prompt] = expectOverflow(answer);
        expectEqual(window, windowTokens, "the window in the message");
        expect(prompt! > windowTokens * 1.5, "the prompt's true count in the message", prompt);
        counts.add(prompt!);
      }
      expectEqual(counts.size, 1, "the number of different counts");
      return `${[...counts][0]} tokens of ${windowTokens}`;
    },
  },
  {
    name: "prompt and max_tokens beyond the window: 400 with counts",
    async run(service) {
      const answer = await service.chat("the cat ".repeat(1_500), { max_tokens: windowTokens - 1_000 });
      const [window, prompt, limit] = expectOverflow(answer);
      expectEqual(window, windowTokens, "the window in the message");
      expect(prompt! > 1_000 && limit === windowTokens - 1_000, "prompt and limit in the message", [prompt, limit]);
    },
  },
  {
    name: "a text that is too long to embed: 400 with counts",
    boundMs: 120_000,
    async run(service) {
      const input = ["short", "the cat ".repeat(inputTokens)];
      const [window, prompt] = expectOverflow(await service.ask("/embeddings", { model: embedder, input }));
      expect(window === inputTokens && prompt! > inputTokens, "both counts", [window, prompt]);
    },
  },
  {
    name: "images are refused by a model that sees none",
    async run(service) {
      const content = [
        { type: "text", text: "What is this?" },
        { type: "image_url", image_url: { url: dot } },
      ];
      const { status, error } = await service.chat({ messages: [{ role: "user", content }] });
      expectEqual(status, 400, "the status");
      expect(error?.param?.startsWith("messages") === true, "param messages…", error);
    },
  },
  {
    name: "parameters out of range: 400 that names them",
    async run(service) {
      const wrong = { temperature: 3, top_p: 2, max_tokens: 0, top_logprobs: 21, presence_penalty: 5 };
      for (const [name, value] of Object.entries(wrong)) {
        const { status, error } = await service.chat(who, { logprobs: true, [name]: value });
        expectEqual(status, 400, `the status with ${name}`);
        expectEqual(error?.param, name, "param");
      }
    },
  },
];
