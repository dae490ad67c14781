/** The controls for the first and the last day of a list. */
import type { ListState } from "../elements/list-state.ts";

interface DayInputsProps {
  readonly list: ListState;
  readonly labels: { readonly from: string; readonly to: string };
  readonly days: { readonly from?: string | undefined; readonly to?: string | undefined };
  readonly max: string;
}

export function DayInputs({ list, labels, days, max }: DayInputsProps) {
  return (["from", "to"] as const).map((end) => (
    <input
      key={end}
      type="date"
      className="day"
      aria-label={labels[end]}
      value={days[end] ?? ""}
      max={max}
      onChange={({ target }) => list.set({ [end]: target.value })}
    />
  ));
}
