/** The page of requests: those of all accounts and routers, each with its explanation. */
import { useState, type FormEvent } from "react";
import type { ConsoleContract } from "../../../../src/surface/contract/contract.ts";
import type { Reply } from "../../../../src/surface/contract/route.ts";
import { Button } from "../../elements/button.tsx";
import { ChosenFilters } from "../../elements/chosen-filters.tsx";
import { oneOf, useListState, type ListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { longKeyName } from "../../elements/requests/key-name.ts";
import { Only, outcomes, reasonText, timeOf, useRequestColumns } from "../../elements/requests/request-columns.tsx";
import { chosenTime, readId, readShort } from "../../elements/requests/request-filter.ts";
import { NoRequest, RequestSteps } from "../../elements/requests/request-steps.tsx";
import { TimeFilter } from "../../elements/requests/time-filter.tsx";
import { FilterSelect } from "../../elements/search-field.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useNow } from "../../time/now.ts";
import { useRead } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";
import { ExplainDialog } from "./explain-dialog.tsx";

type PastRequest = Reply<ConsoleContract["listPast"]>["items"][number];

export default function RequestsPage() {
  const { t, c, format } = useConsoleTexts();
  const list = useListState();
  const [explained, setExplained] = useState<string>();
  const time = chosenTime(list.get, useNow());
  const query = {
    ...{ from: time.from, to: time.to, before: readId(list.get("before")) },
    ...{ account: readId(list.get("account")), keyId: readId(list.get("key")) },
    model: readShort(list.get("model"), 200),
    code: readShort(list.get("code"), 60),
    outcome: oneOf(outcomes, list.get("result")),
  };
  const read = useRead("listPast", { query });
  const columns = usePastColumns(list, setExplained);
  return (
    <Page
      title={c.pages.requests}
      lead={read.data && c.requests.lead(format.days(read.data.days))}
      actions={<Button onClick={() => void read.refetch()}>{t.requests.refresh}</Button>}
    >
      <div className="filters">
        <TimeFilter list={list} time={time} />
        <FilterSelect
          {...{ name: "result", label: t.requests.result, state: list, values: outcomes }}
          texts={t.requests.outcomes}
        />
        <ExplainField onExplain={setExplained} />
      </div>
      <ChosenFilters chosen={useChosen(query, read.data?.items[0])} list={list} />
      <Loaded read={read}>
        {({ items, ...end }) =>
          items.length === 0 ? (
            <NoRequest list={list} end={end} />
          ) : (
            <>
              <Table caption={c.pages.requests} columns={columns} rows={items} rowKey={({ id }) => id} />
              <RequestSteps list={list} end={end} />
            </>
          )
        }
      </Loaded>
      {explained !== undefined && <ExplainDialog id={explained} onClose={() => setExplained(undefined)} />}
    </Page>
  );
}

interface Asked {
  readonly account?: string | undefined;
  readonly keyId?: string | undefined;
  readonly model?: string | undefined;
  readonly code?: string | undefined;
}

/** Names the filters that links have set, by a row that has them. */
function useChosen({ account, keyId, model, code }: Asked, row: PastRequest | undefined) {
  const texts = useConsoleTexts();
  const { parts } = texts.t.requests;
  const key = row && longKeyName(row.key, texts);
  return [
    ...(account === undefined ? [] : [{ name: "account", text: `${parts.account}: ${row?.account.name ?? account}` }]),
    ...(model === undefined ? [] : [{ name: "model", text: `${parts.model}: ${model}` }]),
    ...(keyId === undefined ? [] : [{ name: "key", text: `${parts.key}: ${key ?? keyId}` }]),
    ...(code === undefined ? [] : [{ name: "code", text: `${parts.code}: ${reasonText(code, texts)}` }]),
  ];
}

function usePastColumns(list: ListState, onExplain: (id: string) => void): readonly Column<PastRequest>[] {
  const texts = useConsoleTexts();
  const { t, c } = texts;
  const [at, ...columns] = useRequestColumns({ list, seesOthers: true });
  return [
    at!,
    {
      name: "account",
      title: t.requests.columns.account,
      cell: ({ account }) => (
        <span className="name-cell">
          <Only name="account" value={account.id} list={list}>
            {account.name ?? account.id}
          </Only>
        </span>
      ),
    },
    ...columns,
    {
      name: "actions",
      title: t.requests.columns.actions,
      isTitleHidden: true,
      cell: (request) => (
        <Button
          aria-label={`${c.requests.explain}: ${c.requests.explainOf(timeOf(request, texts))}`}
          onClick={() => onExplain(request.id)}
        >
          {c.requests.explain}
        </Button>
      ),
    },
  ];
}

/** Explains a request whose id a customer has sent, also one that is not in the list. */
function ExplainField({ onExplain }: { readonly onExplain: (id: string) => void }) {
  const { c } = useConsoleTexts();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const id = new FormData(event.currentTarget).get("id") as string; // the form has no files
    onExplain(id.trim().toLowerCase());
  };
  return (
    <form className="explain-field" onSubmit={submit}>
      <input
        {...{ name: "id", required: true, maxLength: 60, pattern: "\\s*[0-9a-fA-F\\-]{8,36}\\s*" }}
        aria-label={c.requests.id}
        placeholder={c.requests.id}
        title={c.requests.malformed}
      />
      <Button type="submit">{c.requests.explain}</Button>
    </form>
  );
}
