/** Random numbers of the distributions that loads are made of. */
import type { Random } from "@weiche/shared/random.ts";

/** A mixture of log-normal distributions, cut at `max`. */
export interface Mixture {
  readonly parts: readonly (readonly [share: number, median: number, sigma: number])[];
  readonly max: number;
}

/** Draws a length in tokens, at least 1. */
export function lengthOf({ parts, max }: Mixture, random: Random): number {
  let rest = random.next();
  const [, median, sigma] = parts.find(([share]) => (rest -= share) < 0) ?? parts.at(-1)!;
  return Math.min(max, Math.max(1, Math.round(median * Math.exp(sigma * normal(random)))));
}

export function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random.next());
}

export function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** A Gamma distributed gap with mean 1. `cv`: its coefficient of variation. */
export function gammaGap(cv: number, random: Random): number {
  return gapAround(cv, random) * (1 - random.next()) ** (cv ** 2);
}

/** A Weibull distributed gap. Its mean depends on the shape. */
export function weibullGap(shape: number, random: Random): number {
  return exponential(random, 1) ** (1 / shape);
}

/** The rest of the gap at a random time. Such a gap is longer than the average gap. */
export function restOfGap(cv: number, random: Random): number {
  return gapAround(cv, random) * random.next();
}

/** The length of the gap at a random time: Gamma distributed with a shape larger by 1. Marsaglia and Tsang (2000). */
function gapAround(cv: number, random: Random): number {
  const shape = 1 / cv ** 2;
  const d = shape + 1 - 1 / 3;
  for (;;) {
    const x = normal(random);
    const v = (1 + x / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(1 - random.next()) < x * x * 0.5 + d - d * v + d * Math.log(v)) return (d * v) / shape;
  }
}
