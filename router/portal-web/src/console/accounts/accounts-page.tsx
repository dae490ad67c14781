/** The page of accounts: their packages, use and refusals, and the blocking of accounts and people. */
import { useState } from "react";
import { Link } from "wouter";
import type { ConsoleAccount } from "../../../../src/surface/contract/console.ts";
import { Badge } from "../../elements/badge.tsx";
import { Button } from "../../elements/button.tsx";
import { Empty } from "../../elements/empty.tsx";
import { Icon } from "../../elements/icons.tsx";
import { oneOf, useListState } from "../../elements/list-state.ts";
import { Page } from "../../elements/page.tsx";
import { SearchField } from "../../elements/search-field.tsx";
import { Pages, Table, type Column } from "../../elements/table.tsx";
import { UsedCell } from "../../elements/used-cell.tsx";
import { LiveItems } from "../live-mark.tsx";
import { useLive } from "../live.ts";
import { useConsoleTexts } from "../texts.ts";
import { NewAccountDialog } from "./new-account-dialog.tsx";
import { PeopleDialog } from "./people-dialog.tsx";

const sorts = ["name", "used", "refused"] as const;
/** Maximum number of accounts that the router sends at once. */
const pageSize = 25;

export default function AccountsPage() {
  const { c, format } = useConsoleTexts();
  const list = useListState();
  const sort = oneOf(sorts, list.sort) ?? "name";
  const live = useLive("accounts", { search: list.search, at: list.page, sort });
  const [isMaking, setMaking] = useState(false);
  const [managed, setManaged] = useState<ConsoleAccount>();
  const columns = useColumns(setManaged);
  const values = [...(live.items?.values() ?? [])].map(({ value }) => value);
  const total = values.find((value) => "total" in value)?.total ?? 0;
  const accounts = values
    .flatMap((value) => ("account" in value ? [value] : []))
    .toSorted((a, b) => a.place - b.place)
    .map(({ account }) => account);
  return (
    <Page
      title={c.pages.accounts}
      lead={live.items && c.accounts.lead(format.number(total))}
      actions={
        <Button kind="primary" onClick={() => setMaking(true)}>
          <Icon name="plus" />
          {c.accounts.create.open}
        </Button>
      }
    >
      <div className="filters">
        <SearchField label={c.accounts.search} state={list} />
        <select aria-label={c.accounts.sort} value={sort} onChange={({ target }) => list.set({ sort: target.value })}>
          {sorts.map((one) => (
            <option key={one} value={one}>
              {`${c.accounts.sort}: ${c.accounts.sorts[one]}`}
            </option>
          ))}
        </select>
      </div>
      <LiveItems live={live}>
        {() =>
          accounts.length === 0 ? (
            <Empty title={c.accounts.empty} hint={c.accounts.emptyHint} />
          ) : (
            <>
              <Table caption={c.pages.accounts} columns={columns} rows={accounts} rowKey={({ id }) => id} />
              <Pages state={list} list={{ total, page: list.page, pageSize }} />
            </>
          )
        }
      </LiveItems>
      {isMaking && <NewAccountDialog onClose={() => setMaking(false)} />}
      {managed && <PeopleDialog account={managed} onClose={() => setManaged(undefined)} />}
    </Page>
  );
}

function useColumns(onManage: (account: ConsoleAccount) => void): readonly Column<ConsoleAccount>[] {
  const { t, c, format } = useConsoleTexts();
  const { columns, states } = c.accounts;
  return [
    {
      name: "name",
      title: columns.name,
      cell: ({ id, name, blockedAt }) => (
        <span className="name-cell">
          <strong>{name}</strong> {blockedAt !== null && <Badge tone="bad">{c.accounts.isBlocked}</Badge>}{" "}
          <small className="reason code-text">{id}</small>
        </span>
      ),
    },
    {
      name: "package",
      title: columns.package,
      cell: ({ package: booked, state, periodEnd }) => (
        <span>
          {booked === null ? states[state] : `${booked}, ${states[state]}`}
          {periodEnd && <small className="reason">{c.accounts.until(format.lastDay(periodEnd))}</small>}
        </span>
      ),
    },
    {
      name: "used",
      title: columns.used,
      isNumber: true,
      cell: ({ name, used, quota, exhausted }) =>
        used === null ? (
          t.shell.unknown
        ) : (
          <UsedCell label={name} used={used} limit={quota}>
            {exhausted && <Badge tone="bad">{c.accounts.exhausted}</Badge>}
          </UsedCell>
        ),
    },
    {
      name: "now",
      title: columns.now,
      cell: ({ parallel, lastMinute }) => c.accounts.now(format.number(parallel), format.number(lastMinute)),
    },
    {
      name: "refused",
      title: columns.refused,
      cell: ({ id, refused }) =>
        refused.length === 0 ? (
          t.shell.none
        ) : (
          <ul className="refused number">
            {refused.map(({ code, count }) => (
              <li key={code}>
                <Link to={`/requests?time=24h&account=${id}&code=${code}`} title={c.accounts.showRefused}>
                  {format.number(count)} × <code>{code}</code>
                </Link>
              </li>
            ))}
          </ul>
        ),
    },
    {
      name: "people",
      title: columns.people,
      cell: ({ users, blockedUsers }) => (
        <span>
          {c.accounts.people(format.number(users))}{" "}
          {blockedUsers > 0 && <Badge tone="bad">{c.accounts.blocked(format.number(blockedUsers))}</Badge>}
        </span>
      ),
    },
    {
      name: "actions",
      title: columns.actions,
      isTitleHidden: true,
      cell: (account) => (
        <Button onClick={() => onManage(account)} aria-label={c.accounts.manage(account.name)}>
          {columns.people} …
        </Button>
      ),
    },
  ];
}
