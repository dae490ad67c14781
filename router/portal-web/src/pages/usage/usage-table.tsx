/** A table of usage by one part, with totals. */
import type { ReactNode } from "react";
import { Link } from "wouter";
import { mainSums } from "../../../../src/usage/usage-columns.ts";
import type { Answer } from "../../api/client.ts";
import type { ListState } from "../../elements/list-state.ts";
import { keyName } from "../../elements/requests/key-name.ts";
import { Pages, Table, type Column } from "../../elements/table.tsx";
import { useTexts, type Texts } from "../../messages/messages.ts";
import { shareOf } from "../../messages/format.ts";

export type Usage = Answer<"showUsage">;
type Row = Usage["items"][number];
export type UsagePart = Usage["by"][number];

interface UsageTableProps {
  readonly usage: Usage;
  readonly by: UsagePart;
  readonly state: ListState;
}

export function UsageTable({ usage, by, state }: UsageTableProps) {
  const { t, format } = useTexts();
  const { columns } = t.usage;
  const all: readonly Column<Row>[] = [
    {
      name: by,
      title: columns[by],
      sort: by,
      cell: (row) => <PartCell row={row} by={by} state={state} />,
      total: t.usage.total,
    },
    ...mainSums.map((name) => ({
      name,
      title: columns[name],
      sort: name,
      isNumber: true,
      cell: (row: Row) => format.number(row[name]),
      total: format.number(usage.totals[name]),
    })),
    {
      name: "share",
      title: columns.share,
      isNumber: true,
      cell: ({ credits }) => format.percent(shareOf(credits, usage.totals.credits)),
    },
  ];
  return (
    <>
      <Table
        caption={t.shell.pages.usage}
        columns={all}
        rows={usage.items}
        rowKey={(row) => row.day ?? row.key?.id ?? row.user?.id ?? row.model ?? ""}
        state={state}
      />
      <Pages state={state} list={usage} />
    </>
  );
}

interface PartCellProps {
  readonly row: Row;
  readonly by: UsagePart;
  readonly state: ListState;
}

function PartCell({ row, by, state }: PartCellProps) {
  const texts = useTexts();
  const { t, format } = texts;
  switch (by) {
    case "day":
      return <strong>{row.day ? format.longDay(row.day) : t.shell.unknown}</strong>;
    case "model":
      return (
        <Only name={by} value={row.model} state={state}>
          <code>{row.model ?? t.shell.unknown}</code>
        </Only>
      );
    case "user":
      return (
        <Only name={by} value={row.user?.id} state={state}>
          {row.user?.email ?? t.usage.deletedUser}
        </Only>
      );
    case "key":
      return (
        <span className="name-cell">
          <Only name={by} value={row.key?.id} state={state}>
            {row.key ? keyName(row.key, texts) : t.shell.unknown}
          </Only>{" "}
          {row.key?.lastFour && <code className="soft">…{row.key.lastFour}</code>}
          <small className="reason">{row.key?.userEmail}</small>
        </span>
      );
  }
}

interface OnlyProps {
  readonly name: "model" | "key" | "user";
  readonly value: string | undefined;
  readonly state: ListState;
  readonly children: ReactNode;
}

/** Links to the days of this part only. */
function Only({ name, value, state, children }: OnlyProps) {
  const { t } = useTexts();
  if (value === undefined) return <strong>{children}</strong>;
  const to = state.with({ [name]: value, by: "day", sort: undefined, order: undefined });
  return (
    <strong>
      <Link to={`/usage?${to}`} title={t.usage.showOnly}>
        {children}
      </Link>
    </strong>
  );
}

/** The name of the row's model, key or user, distinct from those of other rows. Empty without one. */
export function partName({ model, key, user }: Row, texts: Texts): string {
  if (key) return [keyName(key, texts), key.lastFour ? `…${key.lastFour}` : key.userEmail].filter(Boolean).join(" ");
  if (user) return user.email ?? texts.t.usage.deletedUser;
  return model ?? "";
}
