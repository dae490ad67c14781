/** The simulator against queueing theory, in so many runs that two percent hold without an allowance for chance. */
import { expect, test } from "vitest";
import { erlangRatio, pollingRatio } from "./closed-forms.ts";

/** Also prints the deviation of the mean that chance causes. It must be a third of two percent or less. */
function meanOf(what: string, ratios: readonly number[]): number {
  const mean = ratios.reduce((sum, one) => sum + one, 0) / ratios.length;
  const variance = ratios.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (ratios.length - 1);
  console.log(`${what}: ${mean.toFixed(4)} of the law, give or take ${Math.sqrt(variance / ratios.length).toFixed(4)}`);
  return mean;
}

const seeds = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test.each([
  [4, 0.6, 24],
  [8, 0.7, 48],
])(
  "one model on %i places that are used to the share %d waits as Erlang C says, within two percent",
  (places, use, runs) => {
    const ratios = seeds(runs).map((seed) => erlangRatio(places, use, 100_000, seed));
    expect(Math.abs(meanOf(`${places} places`, ratios) - 1)).toBeLessThan(0.02);
  },
  1_200_000,
);

test("two models that take turns wait as the law of polling systems says, within two percent", () => {
  const ratios = seeds(16).map((seed) => pollingRatio(25_000, seed));
  expect(Math.abs(meanOf("two models in turns", ratios) - 1)).toBeLessThan(0.02);
}, 1_200_000);
