/** The length of a load in the largest unit of which it has one, such as `3.5 days`, `58 minutes` or `5.3 seconds`. */
export function spanText(ms: number): string {
  const [unitMs, name] = units.find(([each]) => ms >= each) ?? units.at(-1)!;
  const count = Number((ms / unitMs).toPrecision(2));
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

const units = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
] as const;
