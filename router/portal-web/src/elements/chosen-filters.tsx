/** The filters that links have set, each with a button that removes it. */
import { useTexts } from "../messages/messages.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icons.tsx";
import type { ListState } from "./list-state.ts";

export interface ChosenFilter {
  /** The parameter's name in the address. */
  readonly name: string;
  readonly text: string;
}

/** Shows nothing if no filter is set. */
export function ChosenFilters({
  chosen,
  list,
}: {
  readonly chosen: readonly ChosenFilter[];
  readonly list: ListState;
}) {
  const { t } = useTexts();
  if (chosen.length === 0) return null;
  return (
    <ul className="chosen" aria-label={t.usage.only}>
      {chosen.map(({ name, text }) => (
        <li key={name}>
          <span>{text}</span>
          <Button
            kind="quiet"
            className="icon-only"
            aria-label={t.usage.removeOnly(text)}
            onClick={() => list.set({ [name]: undefined })}
          >
            <Icon name="close" />
          </Button>
        </li>
      ))}
    </ul>
  );
}
