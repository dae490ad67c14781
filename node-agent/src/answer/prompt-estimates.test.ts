import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { asId, type AccountId, type ModelId } from "@weiche/shared/ids.ts";
import { expect, test } from "vitest";
import { PromptEstimates } from "./prompt-estimates.ts";

const rules: ModelRules = {
  id: asId<ModelId>("m"),
  category: "language",
  contextTokens: 1_024,
  reasoning: { mode: "unavailable", efforts: [], templateKwargsAccepted: true },
  toolsEnforced: true,
};
const size = { bytes: 1_000, images: 0 };

/**
 * Learns prompts of 1,000 bytes with these token counts. Each prompt is of a different account unless `account` is set.
 */
function learn(
  estimates: PromptEstimates,
  [count, tokens]: readonly [count: number, tokens: number],
  account?: string,
) {
  for (let n = 0; n < count; n++)
    estimates.learn(rules.id, asId<AccountId>(account ?? `account-${accounts++}`), size, tokens);
}
let accounts = 0;

function taught(...prompts: readonly (readonly [count: number, tokens: number])[]): PromptEstimates {
  const estimates = new PromptEstimates();
  for (const some of prompts) learn(estimates, some);
  return estimates;
}

test("before 30 prompts of a model a byte counts as a fifth of a token, and then by the ratio of these prompts", () => {
  expect(taught([29, 400]).tokensOf(rules, size)).toBe(200);
  expect(taught([30, 400]).tokensOf(rules, size)).toBe(400);
  expect(taught([30, 400]).tokensOf({ ...rules, id: asId("other") }, size)).toBe(200);
});

test("the catalogue may set the tokens of a byte before 30 prompts, and always the tokens of an image", () => {
  const said = { ...rules, tokensPerByte: 0.3, images: { max: 4, formats: ["png"], tokensPerImage: 280 } };
  expect(taught().tokensOf(said, { bytes: 1_000, images: 2 })).toBe(300 + 2 * 280);
  expect(taught([30, 400]).tokensOf(said, { bytes: 1_000, images: 2 })).toBe(400 + 2 * 280);
});

test("three of four prompts had at least as many tokens as the estimate", () => {
  expect(taught([32, 250], [95, 1_000]).tokensOf(rules, size)).toBe(250);
});

test("only the last 128 prompts count", () => {
  expect(taught([500, 100], [128, 400]).tokensOf(rules, size)).toBe(400);
});

test.each([10, 4_000])(
  "one account that sends prompts of %i tokens per 1,000 bytes changes no estimate of others [A9]",
  (tokens) => {
    const estimates = taught([23, 400]);
    learn(estimates, [1_000, tokens], "one");
    expect(estimates.tokensOf(rules, size)).toBe(400);
    learn(estimates, [105, 400]);
    learn(estimates, [1_000, tokens], "one");
    expect(estimates.tokensOf(rules, size)).toBe(400);
  },
);

test("prompts of fewer than five accounts do not count, however many they are", () => {
  const estimates = new PromptEstimates();
  for (const account of ["a", "b", "c", "d"]) learn(estimates, [100, 400], account);
  expect(estimates.tokensOf(rules, size)).toBe(200);
  learn(estimates, [2, 400], "e");
  expect(estimates.tokensOf(rules, size)).toBe(400);
});

test("only the newest prompts of an account count", () => {
  const estimates = new PromptEstimates();
  for (const tokens of [100, 400])
    for (const account of ["a", "b", "c", "d", "e"]) learn(estimates, [7, tokens], account);
  expect(estimates.tokensOf(rules, size)).toBe(400);
});

test("short prompts and prompts with images are not learned from, and an image counts as 256 tokens", () => {
  const estimates = new PromptEstimates();
  for (let n = 0; n < 100; n++) {
    const account = asId<AccountId>(`account-${n}`);
    estimates.learn(rules.id, account, { bytes: 10, images: 0 }, 20);
    estimates.learn(rules.id, account, { bytes: 1_000, images: 1 }, 900);
    estimates.learn(rules.id, account, size, 0);
  }
  expect(estimates.tokensOf(rules, { bytes: 1_000, images: 2 })).toBe(200 + 2 * 256);
});

test("every prompt counts at least one token", () => {
  expect(new PromptEstimates().tokensOf(rules, { bytes: 1, images: 0 })).toBe(1);
});
