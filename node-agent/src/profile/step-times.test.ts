import { expect, test } from "vitest";
import { aloneOf, isMeasured, prefillOf, stepOf, type TimedAnswer } from "./step-times.ts";

/** An answer whose tokens come each 10 ms from `fromMs` on. */
function answer(fromMs: number, tokens: number, more: Partial<TimedAnswer> = {}): TimedAnswer {
  return { askedMs: 0, tokensMs: Array.from({ length: tokens }, (_, index) => fromMs + 10 * index), ...more };
}
const alone = { promptTokens: 100, firstTokenMs: 50, tokensPerEvent: 1 };

test("a step is measured while all answers run, and its context ends in the middle of that time", () => {
  // The second answer begins with the eleventh token of the first one, and both run for 20 tokens.
  const answers = [answer(100, 30), answer(200, 30)];
  expect(stepOf(answers, alone)).toEqual({ running: 2, contextTokens: 100 + 20 + 100 + 10, stepMs: 10 });
  expect(stepOf(answers, { ...alone, tokensPerEvent: 2 })).toMatchObject({ contextTokens: 260, stepMs: 5 });
});

test("answers that did not run at the same time measure no step", () => {
  expect(stepOf([answer(100, 30), answer(400, 30)], alone)).toBeUndefined();
  expect(stepOf([answer(100, 30), answer(330, 30)], alone)).toBeUndefined();
  expect(stepOf([answer(100, 30), answer(0, 0)], alone)).toBeUndefined();
  expect(stepOf([], alone)).toBeUndefined();
});

test("enough is measured when each answer has its tokens after the last one began", () => {
  expect(isMeasured([answer(100, 12), answer(200, 5)], 5)).toBe(false);
  expect(isMeasured([answer(100, 15), answer(200, 4)], 5)).toBe(false);
  expect(isMeasured([answer(100, 17), answer(200, 6)], 5)).toBe(true);
  expect(isMeasured([answer(100, 17), answer(0, 0)], 5)).toBe(false);
});

test("prompts are read as fast as a longer prompt delays the first token", () => {
  const short = aloneOf(answer(60, 10, { promptTokens: 100, completionTokens: 20 }));
  expect(short).toEqual({ promptTokens: 100, firstTokenMs: 60, tokensPerEvent: 2 });
  const long = aloneOf(answer(560, 10, { promptTokens: 1_100, completionTokens: 10 }));
  expect(prefillOf(short, long)).toBe(2_000);
  expect(prefillOf(long, short)).toBeUndefined();
});

test("an engine that reports no usage cannot be measured", () => {
  expect(() => aloneOf(answer(60, 10))).toThrow("reported no usage");
  expect(() => aloneOf(answer(60, 0, { promptTokens: 1, completionTokens: 0 }))).toThrow("was empty");
});
