/** The page of the audit log: who did what. */
import { addressOf, type Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Badge } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { endOfGermanDay, readDay, startOfGermanDay } from "../../time/german-day.ts";
import { Icon } from "../../elements/icons.tsx";
import { oneOf, useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { SearchField } from "../../elements/search-field.tsx";
import { Pages, Table, type Column } from "../../elements/table.tsx";
import { useSession } from "../../session/session.ts";
import { useTexts } from "../../messages/messages.ts";

type Entry = Answer<"listAudit">["items"][number];
const sorts = ["at", "actor", "action", "object", "result"] as const;

export default function AuditPage() {
  const { t } = useTexts();
  const list = useListState();
  const columns = useColumns();
  const [from, to] = [readDay(list.get("from")), readDay(list.get("to"))];
  const filter = {
    search: list.search,
    from: from && startOfGermanDay(from),
    to: to && endOfGermanDay(to),
  };
  const sorted = { sort: oneOf(sorts, list.sort), order: list.order };
  const read = useRead("listAudit", { query: { ...filter, ...sorted, page: list.page } });
  return (
    <Page
      title={t.shell.pages.audit}
      lead={t.audit.lead}
      actions={
        <a className="button" href={addressOf("exportAudit", { query: filter })} download>
          <Icon name="download" />
          {t.audit.csv}
        </a>
      }
    >
      <div className="filters">
        <SearchField label={t.audit.search} state={list} />
        {(["from", "to"] as const).map((end) => (
          <label key={end} className="inline">
            {t.audit[end]}
            <input
              type="date"
              className="day"
              value={{ from, to }[end] ?? ""}
              onChange={({ target }) => list.set({ [end]: target.value })}
            />
          </label>
        ))}
      </div>
      <Loaded read={read}>
        {(entries) =>
          entries.items.length > 0 ? (
            <>
              <Table
                caption={t.shell.pages.audit}
                columns={columns}
                rows={entries.items}
                rowKey={({ number }) => String(number)}
                state={list}
              />
              <Pages state={list} list={entries} />
              {entries.isCut && <p>{t.audit.cut}</p>}
            </>
          ) : (
            <Empty title={t.audit.empty} hint={entries.isCut ? t.audit.cut : t.audit.emptyHint}>
              <Button onClick={() => list.set({ search: undefined, from: undefined, to: undefined })}>
                {t.audit.clearFilter}
              </Button>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}

function useColumns(): readonly Column<Entry>[] {
  const { t, format } = useTexts();
  const { columns } = t.audit;
  const { account } = useSession();
  const actors: Readonly<Record<string, string>> = { operator: t.audit.operator, nobody: t.audit.nobody };
  return [
    { name: "at", title: columns.at, sort: "at", cell: ({ at }) => <time>{format.dateTime(at)}</time> },
    {
      name: "actor",
      title: columns.actor,
      sort: "actor",
      cell: ({ actor, actorName }) => actorName ?? actors[actor] ?? actor,
    },
    { name: "action", title: columns.action, sort: "action", cell: ({ action }) => <code>{action}</code> },
    {
      name: "object",
      title: columns.object,
      sort: "object",
      cell: ({ object, details }) => (
        <span className="name-cell">
          {object.name ?? (object.kind === "account" ? account.name : object.id)}
          {Object.keys(details).length > 0 && (
            <details>
              <summary>{t.audit.details}</summary>
              <small>{JSON.stringify(details)}</small>
            </details>
          )}
        </span>
      ),
    },
    {
      name: "result",
      title: columns.result,
      sort: "result",
      cell: ({ result }) =>
        result === "done" ? <Badge tone="good">{t.audit.done}</Badge> : <Badge tone="warn">{result}</Badge>,
    },
    { name: "source", title: columns.source, cell: ({ source }) => <code>{source}</code> },
  ];
}
