/** The controls for the days, the grouping and the filters of usage. */
import { Button } from "../../elements/button.tsx";
import { Icon } from "../../elements/icons.tsx";
import type { ListState } from "../../elements/list-state.ts";
import { useTexts } from "../../messages/messages.ts";
import { germanDay } from "../../time/german-day.ts";
import { useNow } from "../../time/now.ts";
import { periodChoices, type UsageDays } from "./usage-period.ts";
import { keyName, type Usage, type UsagePart } from "./usage-table.tsx";

interface FilterProps {
  readonly list: ListState;
  readonly days: UsageDays;
  readonly offered: readonly UsagePart[];
  readonly by: UsagePart;
}

export function UsageFilters({ list, days, offered, by }: FilterProps) {
  const { t } = useTexts();
  const today = germanDay(useNow());
  return (
    <div className="filters">
      <select
        aria-label={t.usage.period}
        value={days.choice}
        onChange={({ target }) =>
          list.set(
            target.value === "own"
              ? { days: undefined, from: days.from ?? today, to: days.to ?? today }
              : { days: target.value, from: undefined, to: undefined },
          )
        }
      >
        {periodChoices.map((choice) => (
          <option key={choice} value={choice}>
            {t.usage.periods[choice]}
          </option>
        ))}
      </select>
      {days.choice === "own" &&
        (["from", "to"] as const).map((end) => (
          <input
            key={end}
            type="date"
            className="day"
            aria-label={t.usage[end]}
            value={days[end] ?? ""}
            max={today}
            onChange={({ target }) => list.set({ [end]: target.value })}
          />
        ))}
      <select
        aria-label={t.usage.by}
        value={by}
        onChange={({ target }) => list.set({ by: target.value, sort: undefined, order: undefined })}
      >
        {offered.map((part) => (
          <option key={part} value={part}>
            {`${t.usage.by}: ${t.usage.parts[part]}`}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Shows the active filters, or nothing. */
export function ChosenFilters({ filter, list }: { readonly filter: Usage["filter"]; readonly list: ListState }) {
  const texts = useTexts();
  const { t } = texts;
  const { model, key, user } = filter;
  const chosen = [
    ...(model === null ? [] : [{ name: "model", text: model }]),
    ...(key === null
      ? []
      : [{ name: "key", text: `${keyName(key, texts)}${key.lastFour ? ` …${key.lastFour}` : ""}` }]),
    ...(user === null ? [] : [{ name: "user", text: user.email ?? t.usage.deletedUser }]),
  ] as const;
  if (chosen.length === 0) return null;
  return (
    <ul className="chosen" aria-label={t.usage.only}>
      {chosen.map(({ name, text }) => {
        const what = `${t.usage.parts[name as UsagePart]}: ${text}`;
        return (
          <li key={name}>
            <span>{what}</span>
            <Button
              kind="quiet"
              className="icon-only"
              aria-label={t.usage.removeOnly(what)}
              onClick={() => list.set({ [name]: undefined })}
            >
              <Icon name="close" />
            </Button>
          </li>
        );
      })}
    </ul>
  );
}
