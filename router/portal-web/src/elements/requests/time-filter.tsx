/** The control for the time of a list of requests. */
import { useTexts } from "../../messages/messages.ts";
import { DayInputs } from "../search-field.tsx";
import { germanDay } from "../../time/german-day.ts";
import { useNow } from "../../time/now.ts";
import type { ListState } from "../list-state.ts";
import { times, type ChosenTime } from "./request-filter.ts";

export function TimeFilter({ list, time }: { readonly list: ListState; readonly time: ChosenTime }) {
  const { t } = useTexts();
  const today = germanDay(useNow());
  return (
    <>
      <select
        aria-label={t.requests.period}
        value={time.choice}
        onChange={({ target: { value } }) =>
          list.set(
            value === "own"
              ? { time: undefined, from: today, to: today }
              : { time: value === "all" ? undefined : value, from: undefined, to: undefined },
          )
        }
      >
        {times.map((choice) => (
          <option key={choice} value={choice}>
            {`${t.requests.period}: ${t.requests.periods[choice]}`}
          </option>
        ))}
      </select>
      {time.choice === "own" && (
        <DayInputs list={list} labels={t.requests} days={{ from: time.fromDay, to: time.toDay }} max={today} />
      )}
    </>
  );
}
