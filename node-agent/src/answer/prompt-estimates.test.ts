import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { expect, test } from "vitest";
import { PromptEstimates } from "./prompt-estimates.ts";

const model = asId<ModelId>("m");
const size = { bytes: 1_000, images: 0 };

/** Has seen so many prompts of 1,000 bytes with so many tokens each. */
function taught(...prompts: readonly (readonly [count: number, tokens: number])[]): PromptEstimates {
  const estimates = new PromptEstimates();
  for (const [count, tokens] of prompts) for (let n = 0; n < count; n++) estimates.learn(model, size, tokens);
  return estimates;
}

test("before 30 prompts of a model a byte is a fifth of a token, and after them as much as theirs", () => {
  expect(taught([29, 400]).tokensOf(model, size)).toBe(200);
  expect(taught([30, 400]).tokensOf(model, size)).toBe(400);
  expect(taught([30, 400]).tokensOf(asId("other"), size)).toBe(200);
});

test("three of four prompts had at least as many tokens as the estimate says", () => {
  expect(taught([25, 100], [75, 400]).tokensOf(model, size)).toBe(400);
  expect(taught([26, 100], [74, 400]).tokensOf(model, size)).toBe(100);
});

test("somebody's strange prompts raise nobody's estimate while three of four are usual", () => {
  expect(taught([32, 250], [95, 1_000]).tokensOf(model, size)).toBe(250);
});

test("only the last 128 prompts count", () => {
  expect(taught([500, 100], [128, 400]).tokensOf(model, size)).toBe(400);
});

test("short prompts and prompts with images teach nothing, and an image counts as 256 tokens", () => {
  const estimates = new PromptEstimates();
  for (let n = 0; n < 100; n++) {
    estimates.learn(model, { bytes: 10, images: 0 }, 20);
    estimates.learn(model, { bytes: 1_000, images: 1 }, 900);
    estimates.learn(model, size, 0);
  }
  expect(estimates.tokensOf(model, { bytes: 1_000, images: 2 })).toBe(200 + 2 * 256);
});

test("no prompt is free", () => {
  expect(new PromptEstimates().tokensOf(model, { bytes: 1, images: 0 })).toBe(1);
});
