/** The search field and the filters of a list. A search is written into the address when typing pauses. */
import { useEffect, useState } from "react";
import { useTexts } from "../messages/messages.ts";
import { oneOf, type ListState } from "./list-state.ts";

const pauseMs = 250;

export function SearchField({ label, state }: { readonly label: string; readonly state: ListState }) {
  const { search = "", set } = state;
  const [text, setText] = useState(search);
  useEffect(() => {
    if (text === search) return;
    const timer = setTimeout(() => set({ search: text || undefined }), pauseMs);
    return () => clearTimeout(timer);
  }, [text, search, set]);
  return (
    <input
      type="search"
      className="search"
      aria-label={label}
      placeholder={label}
      maxLength={200}
      value={text}
      onChange={({ target }) => setText(target.value)}
    />
  );
}

interface FilterSelectProps<Value extends string> {
  /** The parameter's name in the address. */
  readonly name: string;
  readonly label: string;
  readonly state: ListState;
  readonly values: readonly Value[];
  readonly texts: Readonly<Record<Value, string>>;
}

/** Chooses one of a few values, or all. */
export function FilterSelect<Value extends string>({ name, label, state, values, texts }: FilterSelectProps<Value>) {
  const { t } = useTexts();
  return (
    <select
      aria-label={label}
      value={oneOf(values, state.get(name)) ?? ""}
      onChange={({ target }) => state.set({ [name]: target.value })}
    >
      <option value="">{`${label}: ${t.shell.all}`}</option>
      {values.map((value) => (
        <option key={value} value={value}>
          {texts[value]}
        </option>
      ))}
    </select>
  );
}

interface DayInputsProps {
  readonly list: ListState;
  readonly labels: { readonly from: string; readonly to: string };
  readonly days: { readonly from?: string | undefined; readonly to?: string | undefined };
  readonly max: string;
}

/** The controls for the first and the last day of a list. */
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
