/** Stacks the credits of each day by model, key or user, for the chart. Pure. */
interface DayRow {
  readonly day?: string;
  /** The name of its model, key or user. Empty if the bars have no parts. */
  readonly series: string;
  readonly credits: string;
}

interface DayBar {
  readonly day: string;
  readonly credits: number;
  /** From the bottom up, in the order of `series`. */
  readonly parts: readonly { readonly series: string; readonly from: number; readonly to: number }[];
}

export interface DayBars {
  /** Names of the parts, the largest first. The last series may combine all others. */
  readonly series: readonly string[];
  readonly bars: readonly DayBar[];
}

const seriesMax = 5;

export function dayBars(rows: readonly DayRow[], days: readonly string[], others: string): DayBars {
  const sums = new Map<string, number>();
  for (const { series: name, credits } of rows) sums.set(name, (sums.get(name) ?? 0) + Number(credits));
  const names = [...sums.keys()].toSorted((a, b) => sums.get(b)! - sums.get(a)!);
  const shown = names.length > seriesMax ? names.slice(0, seriesMax - 1) : names;
  const series = shown.length < names.length ? [...shown, others] : shown;
  const byDay = Map.groupBy(rows, ({ day }) => day ?? "");
  const bars = days.map((day) => {
    const here = byDay.get(day) ?? [];
    let ground = 0;
    const parts = series.map((name) => {
      const from = ground;
      for (const { series: own, credits } of here)
        if (own === name || (name === others && !shown.includes(own))) ground += Number(credits);
      return { series: name, from, to: ground };
    });
    return { day, credits: ground, parts };
  });
  return { series, bars };
}
