/** A table of the API's refusals: meaning, advice, and whether to retry. */
import type { Answer } from "../../api/client.ts";
import { Badge } from "../../elements/badge.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useHelp } from "../../messages/help.ts";

type Refusal = Answer<"showService">["refusals"][number];

export function RefusalTable({ refusals }: { readonly refusals: readonly Refusal[] }) {
  const help = useHelp();
  const { columns } = help.errors;
  const all: readonly Column<Refusal>[] = [
    { name: "status", title: columns.status, cell: (refusal) => <Signs refusal={refusal} /> },
    { name: "means", title: columns.means, cell: ({ kind }) => help.refusals[kind].means },
    { name: "todo", title: columns.todo, cell: ({ kind }) => help.refusals[kind].todo },
    {
      name: "retry",
      title: columns.retry,
      cell: ({ retry }) => <Badge tone={retry ? "good" : "plain"}>{retry ? help.errors.yes : help.errors.no}</Badge>,
    },
  ];
  return (
    <div className="prose-table refusals">
      <Table caption={help.errors.title} columns={all} rows={refusals} rowKey={({ kind }) => kind} />
    </div>
  );
}

/** Shows how a program recognises the refusal. */
function Signs({ refusal: { status, type, code } }: { readonly refusal: Refusal }) {
  const help = useHelp();
  const isNamed = code !== null && code !== String(status);
  return (
    <span className="name-cell">
      <strong className="number">{status}</strong>
      <small className="reason">{code === null ? help.errors.page : <code>{isNamed ? code : type}</code>}</small>
    </span>
  );
}
