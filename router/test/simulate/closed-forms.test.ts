/** The simulator against queueing theory, in runs so short that chance moves them. */
import { expect, test } from "vitest";
import { erlangRatio, pollingRatio } from "./closed-forms.ts";

/**
 * Returns by how much the mean differs from 1, without twice its error of chance. Waits of neighbours depend on each other,
 * so this error is taken from the difference of the runs.
 */
function certainDifference(ratios: readonly number[]): number {
  const mean = ratios.reduce((sum, one) => sum + one, 0) / ratios.length;
  const deviation = Math.sqrt(ratios.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (ratios.length - 1));
  return Math.abs(mean - 1) - (2 * deviation) / Math.sqrt(ratios.length);
}

test.each([
  [4, 0.6],
  [8, 0.7],
])(
  "one model on %i places that are used to the share %d waits as Erlang C says, within two percent and the error of chance",
  (places, use) => {
    const ratios = [1, 2, 3, 4].map((seed) => erlangRatio(places, use, 15_000, seed));
    expect(certainDifference(ratios)).toBeLessThan(0.02);
  },
);

test("two models that take turns wait as the law of polling systems says, within two percent and the error of chance", () => {
  const ratios = [1, 2, 3, 4].map((seed) => pollingRatio(6_000, seed));
  expect(certainDifference(ratios)).toBeLessThan(0.02);
});
