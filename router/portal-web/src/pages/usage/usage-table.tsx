/** Usage by one thing, with what all of it comes to. */
import type { Answer } from "../../api/client.ts";
import type { ListState } from "../../elements/list-state.ts";
import { Pages, Table, type Column } from "../../elements/table.tsx";
import { useTexts } from "../../messages/messages.ts";
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
  const number = (name: "requests" | "promptTokens" | "completionTokens" | "credits"): Column<Row> => ({
    name,
    title: columns[name],
    sort: name,
    isNumber: true,
    cell: (row) => format.number(row[name]),
  });
  const all: readonly Column<Row>[] = [
    { name: by, title: columns[by], sort: by, cell: (row) => <PartCell row={row} by={by} /> },
    number("requests"),
    number("promptTokens"),
    number("completionTokens"),
    number("credits"),
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
        totals={[
          t.usage.total,
          ...([usage.totals.requests, usage.totals.promptTokens, usage.totals.completionTokens] as const).map((sum) =>
            format.number(sum),
          ),
          format.number(usage.totals.credits),
          "",
        ]}
      />
      <Pages state={state} list={usage} />
    </>
  );
}

function PartCell({ row, by }: { readonly row: Row; readonly by: UsagePart }) {
  const { t, format } = useTexts();
  switch (by) {
    case "day":
      return <strong>{row.day ? format.longDay(row.day) : t.shell.unknown}</strong>;
    case "model":
      return (
        <strong>
          <code>{row.model ?? t.shell.unknown}</code>
        </strong>
      );
    case "user":
      return <strong>{row.user?.email ?? t.usage.deletedUser}</strong>;
    case "key":
      return (
        <span className="name-cell">
          <strong>{row.key?.kind === "test-chat" ? t.usage.testChat : (row.key?.name ?? t.shell.unknown)}</strong>{" "}
          {row.key?.lastFour && <code className="soft">…{row.key.lastFour}</code>}
          <small className="reason">{row.key?.userEmail}</small>
        </span>
      );
  }
}
