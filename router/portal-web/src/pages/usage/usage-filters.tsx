/** The controls for the days, the grouping and the filters of usage. */
import type { ChosenFilter } from "../../elements/chosen-filters.tsx";
import { longKeyName } from "../../elements/requests/key-name.ts";
import type { ListState } from "../../elements/list-state.ts";
import { useTexts, type Texts } from "../../messages/messages.ts";
import { DayInputs } from "../../elements/search-field.tsx";
import { germanDay } from "../../time/german-day.ts";
import { useNow } from "../../time/now.ts";
import { periodChoices, type UsageDays } from "./usage-period.ts";
import type { Usage, UsagePart } from "./usage-table.tsx";

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
      {days.choice === "own" && <DayInputs list={list} labels={t.usage} days={days} max={today} />}
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

/** Names the filters that the rows have. */
export function chosenFilters({ model, key, user }: Usage["filter"], texts: Texts): readonly ChosenFilter[] {
  const { parts, deletedUser } = texts.t.usage;
  return [
    ...(model === null ? [] : [{ name: "model", text: `${parts.model}: ${model}` }]),
    ...(key === null ? [] : [{ name: "key", text: `${parts.key}: ${longKeyName(key, texts)}` }]),
    ...(user === null ? [] : [{ name: "user", text: `${parts.user}: ${user.email ?? deletedUser}` }]),
  ];
}
