/** Stacks the credits of each day by model, for the chart. Pure. */
interface DayRow {
  readonly day?: string;
  readonly model?: string;
  readonly credits: string;
}

interface DayBar {
  readonly day: string;
  readonly credits: number;
  /** From the bottom up, in the order of `series`. */
  readonly parts: readonly { readonly series: string; readonly from: number; readonly to: number }[];
}

export interface DayBars {
  /** Names of the models, the largest first. The last series may combine all others. */
  readonly series: readonly string[];
  readonly bars: readonly DayBar[];
}

const seriesMax = 5;

export function dayBars(rows: readonly DayRow[], days: readonly string[], others: string): DayBars {
  const sums = new Map<string, number>();
  for (const { model = "", credits } of rows) sums.set(model, (sums.get(model) ?? 0) + Number(credits));
  const models = [...sums.keys()].toSorted((a, b) => sums.get(b)! - sums.get(a)!);
  const shown = models.length > seriesMax ? models.slice(0, seriesMax - 1) : models;
  const series = shown.length < models.length ? [...shown, others] : shown;
  const byDay = Map.groupBy(rows, ({ day }) => day ?? "");
  const bars = days.map((day) => {
    const here = byDay.get(day) ?? [];
    let ground = 0;
    const parts = series.map((name) => {
      const from = ground;
      for (const { model = "", credits } of here)
        if (model === name || (name === others && !shown.includes(model))) ground += Number(credits);
      return { series: name, from, to: ground };
    });
    return { day, credits: ground, parts };
  });
  return { series, bars };
}
