/** Computes medians, ratios and distributions of a bench's rounds. Pure. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: number;
}

/** Returns the spread of values, or undefined without values. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.filter(Number.isFinite).toSorted((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
  return { median: middle, min: sorted[0]!, max: sorted.at(-1)!, rounds: sorted.length };
}

/** One value of one program in one round. */
export interface Value {
  readonly round: number;
  readonly value: number;
}

/** Returns the ratios of the rounds that have both values, because a disturbance affects both values of its round. */
export function pairRatios(values: readonly Value[], against: readonly Value[]): Spread | undefined {
  return pair(values, against, (value, other) => value / other);
}

/** Returns the differences of the rounds that have both values. */
export function pairDifferences(values: readonly Value[], against: readonly Value[]): Spread | undefined {
  return pair(values, against, (value, other) => value - other);
}

function pair(
  values: readonly Value[],
  against: readonly Value[],
  compare: (value: number, other: number) => number,
): Spread | undefined {
  const others = new Map(against.map(({ round, value }) => [round, value]));
  return spreadOf(
    values.flatMap(({ round, value }) => {
      const other = others.get(round);
      return other === undefined ? [] : [compare(value, other)];
    }),
  );
}

/** Lower bounds and counts in ascending order. */
export type Buckets = readonly (readonly [from: number, count: number])[];

export function mergeBuckets(all: readonly Buckets[]): Buckets {
  const merged = new Map<number, number>();
  for (const buckets of all) for (const [from, count] of buckets) merged.set(from, (merged.get(from) ?? 0) + count);
  return [...merged].toSorted(([a], [b]) => a - b);
}

/** Returns the numbers of a result, each rounded to a tenth. */
export function inTenths<T extends object>(result: T): T {
  return Object.fromEntries(Object.entries(result).map(([key, value]) => [key, tenth(value as number)])) as T;
}

export function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Writes the median with minimum and maximum. */
export function spreadText({ median, min, max }: Spread): string {
  return `${short(median)} (${short(min)}–${short(max)})`;
}

/** Writes a number with three significant digits. */
export function short(value: number): string {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 3)).replace(/\B(?=(\d{3})+(?!\d))/g, digits === 0 ? "," : "");
}

/** Returns the items in a random order, by the Fisher–Yates shuffle. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const result = [...items];
  for (let at = result.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [result[at], result[other]] = [result[other]!, result[at]!];
  }
  return result;
}
