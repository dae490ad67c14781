/** The end of a list of requests: how far it was searched, and links to older and to the newest ones. */
import { useTexts } from "../../messages/messages.ts";
import { ButtonLink } from "../button.tsx";
import { Empty } from "../empty.tsx";
import type { ListState } from "../list-state.ts";

interface ListEnd {
  readonly next: string | null;
  readonly searchedTo: string;
}

export function RequestSteps({ list, end }: { readonly list: ListState; readonly end: ListEnd }) {
  const { t, format } = useTexts();
  const isFirst = list.get("before") === undefined;
  if (isFirst && end.next === null) return null;
  return (
    <nav className="pages" aria-label={t.requests.steps}>
      <span className="soft number">{t.requests.searchedTo(format.dateTime(end.searchedTo))}</span>
      {!isFirst && <ButtonLink to={`/requests?${list.with({ before: undefined })}`}>{t.requests.newest}</ButtonLink>}
      {end.next !== null && (
        <ButtonLink to={`/requests?${list.with({ before: end.next })}`}>{t.requests.older}</ButtonLink>
      )}
    </nav>
  );
}

/** A search without a match: it ended, or it stopped and can be continued. */
export function NoRequest({ list, end }: { readonly list: ListState; readonly end: ListEnd }) {
  const { t, format } = useTexts();
  const clear = <ButtonLink to="/requests">{t.requests.clear}</ButtonLink>;
  if (end.next === null)
    return (
      <Empty title={t.requests.noMatch} hint={t.requests.noMatchHint}>
        {clear}
      </Empty>
    );
  return (
    <Empty title={t.requests.notYet(format.dateTime(end.searchedTo))} hint={t.requests.notYetHint}>
      <ButtonLink kind="primary" to={`/requests?${list.with({ before: end.next })}`}>
        {t.requests.further}
      </ButtonLink>
      {clear}
    </Empty>
  );
}
