/** The page of requests: each call without its content, and why it was refused. */
import { useState } from "react";
import { addressOf, type Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Button, ButtonLink } from "../../elements/button.tsx";
import { ChosenFilters, type ChosenFilter } from "../../elements/chosen-filters.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { Empty } from "../../elements/empty.tsx";
import { Icon } from "../../elements/icons.tsx";
import { oneOf, useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { longKeyName } from "../../elements/requests/key-name.ts";
import {
  outcomes,
  reasonText,
  useRequestColumns,
  type ListedRequest,
} from "../../elements/requests/request-columns.tsx";
import { RequestFacts } from "../../elements/requests/request-facts.tsx";
import { chosenTime, readId, readShort } from "../../elements/requests/request-filter.ts";
import { NoRequest, RequestSteps } from "../../elements/requests/request-steps.tsx";
import { TimeFilter } from "../../elements/requests/time-filter.tsx";
import { FilterSelect } from "../../elements/search-field.tsx";
import { Table } from "../../elements/table.tsx";
import { useTexts, type Texts } from "../../messages/messages.ts";
import { useMay } from "../../session/session.ts";
import { useNow } from "../../time/now.ts";

export default function RequestsPage() {
  const texts = useTexts();
  const { t, format } = texts;
  const list = useListState();
  const seesOthers = useMay()("listUsers");
  const [opened, setOpened] = useState<ListedRequest>();
  const time = chosenTime(list.get, useNow());
  const code = readShort(list.get("code"), 60);
  const query = {
    ...{ from: time.from, to: time.to, code },
    model: readShort(list.get("model"), 200),
    outcome: oneOf(outcomes, list.get("result")),
    keyId: readId(list.get("key")),
    userId: readId(list.get("user")),
  };
  const read = useRead("listRequests", { query: { ...query, before: readId(list.get("before")) } });
  const columns = useRequestColumns({
    ...{ list, seesOthers },
    at: (request, text) => (
      <Button kind="quiet" className="row-open" aria-label={t.requests.open(text)} onClick={() => setOpened(request)}>
        <time>{text}</time>
      </Button>
    ),
  });
  const lead = seesOthers ? t.requests.lead : t.requests.leadOwn;
  const isFiltered = list.isFiltered || list.get("before") !== undefined;
  return (
    <Page
      title={t.shell.pages.requests}
      lead={read.data && lead(format.days(read.data.days))}
      actions={
        <>
          <Button onClick={() => void read.refetch()}>{t.requests.refresh}</Button>
          <a className="button" href={addressOf("exportRequests", { query })} download title={t.requests.csvHint}>
            <Icon name="download" />
            {t.requests.csv}
          </a>
        </>
      }
    >
      <div className="filters">
        <TimeFilter list={list} time={time} />
        <FilterSelect
          {...{ name: "result", label: t.requests.result, state: list, values: outcomes }}
          texts={t.requests.outcomes}
        />
      </div>
      {read.data && <ChosenFilters chosen={chosenFilters(read.data.filter, query, texts)} list={list} />}
      <Loaded read={read}>
        {({ items, ...end }) =>
          items.length > 0 ? (
            <>
              <Table caption={t.shell.pages.requests} columns={columns} rows={items} rowKey={({ id }) => id} />
              <RequestSteps list={list} end={end} />
            </>
          ) : isFiltered ? (
            <NoRequest list={list} end={end} />
          ) : (
            <Empty title={t.requests.empty} hint={t.requests.emptyHint}>
              <ButtonLink to="/start">{t.shell.pages.start}</ButtonLink>
            </Empty>
          )
        }
      </Loaded>
      {opened && (
        <Dialog title={t.requests.details} onClose={() => setOpened(undefined)}>
          <RequestFacts request={opened} />
          <div className="actions">
            <Button onClick={() => setOpened(undefined)}>{t.shell.close}</Button>
          </div>
        </Dialog>
      )}
    </Page>
  );
}

interface ChosenWords {
  readonly model?: string | undefined;
  readonly code?: string | undefined;
}

/** Names the filters that links have set. */
function chosenFilters(
  { key, user }: Answer<"listRequests">["filter"],
  { model, code }: ChosenWords,
  texts: Texts,
): readonly ChosenFilter[] {
  const { parts } = texts.t.requests;
  return [
    ...(model === undefined ? [] : [{ name: "model", text: `${parts.model}: ${model}` }]),
    ...(key === null ? [] : [{ name: "key", text: `${parts.key}: ${longKeyName(key, texts)}` }]),
    ...(user === null ? [] : [{ name: "user", text: `${parts.user}: ${user.email ?? texts.t.usage.deletedUser}` }]),
    ...(code === undefined ? [] : [{ name: "code", text: `${parts.code}: ${reasonText(code, texts)}` }]),
  ];
}
