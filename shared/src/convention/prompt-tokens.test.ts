import { expect, test } from "vitest";
import type { ModelRules } from "../catalogue.ts";
import { promptTokensMax, requestTokensMax } from "./prompt-tokens.ts";

const rules = { contextTokens: 32_768 } as ModelRules;
const embeddings = { dimensions: { min: 1, max: 2, default: 2 }, inputTokens: 8_192 };
const instructed = { ...embeddings, instruction: { default: "d".repeat(100), template: "t".repeat(20) } };
const chat = { model: "m", embeds: false, answers: 1 };
const image = { param: "p", format: "png" } as const;

test("a chat may cost the most tokens of its bytes and images, and max_tokens for each answer [A8]", () => {
  const prompt = 100 * 6 + 4_096;
  expect(requestTokensMax(rules, { ...chat, maxTokens: 50 }, 100)).toBe(prompt + 51);
  expect(requestTokensMax(rules, { ...chat, maxTokens: 50, answers: 8 }, 100)).toBe(prompt + 8 * 51);
  expect(requestTokensMax(rules, { ...chat, maxTokens: 50, images: [image] }, 100)).toBe(prompt + 16_384 + 51);
});

test("a chat without max_tokens, or with a long prompt, may cost at most the context window for each answer", () => {
  expect(requestTokensMax(rules, chat, 100)).toBe(32_768);
  expect(requestTokensMax(rules, { ...chat, answers: 3 }, 100)).toBe(4_696 + 3 * 32_768 - 4_696);
  expect(requestTokensMax(rules, { ...chat, maxTokens: 1 }, 1_000_000)).toBe(32_768);
});

test("texts to embed may cost the most tokens of their bytes and instruction, and at most the model's limit for each [A8]", () => {
  const texts = { model: "m", embeds: true, answers: 10 };
  const model = (its: object) => ({ ...rules, embeddings: its }) as ModelRules;
  expect(requestTokensMax(model(embeddings), texts, 100)).toBe(100 * 6 + 4_096 + 10 * 64);
  expect(requestTokensMax(model(instructed), texts, 100)).toBe(100 * 6 + 4_096 + 10 * (120 * 6 + 64));
  expect(requestTokensMax(model(instructed), { ...texts, instructionBytes: 500 }, 600)).toBe(
    600 * 6 + 4_096 + 10 * (520 * 6 + 64),
  );
  expect(requestTokensMax(model(instructed), { ...texts, instructionBytes: Infinity }, 70_000)).toBe(10 * 8_192);
  expect(requestTokensMax(model(embeddings), texts, 1_000_000)).toBe(10 * 8_192);
});

test("a request's bound is at least the largest prompt count that an agent accepts for the same bytes", () => {
  for (const bytes of [1, 100, 4_000])
    for (const images of [0, 1])
      expect(
        requestTokensMax(rules, { ...chat, images: Array<typeof image>(images).fill(image), maxTokens: 1 }, bytes),
      ).toBeGreaterThanOrEqual(Math.min(32_768, promptTokensMax(bytes, images)));
});
