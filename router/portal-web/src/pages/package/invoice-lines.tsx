/** All invoice lines. The print view shows only these. */
import type { Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Button } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

type Line = Answer<"listInvoiceLines">["items"][number];

export function InvoiceLines() {
  const { t } = useTexts();
  const { account } = useSession();
  const { invoice } = t.packages;
  const read = useRead("listInvoiceLines", {});
  const columnsOf = useColumns();
  return (
    <section className="invoice" aria-labelledby="invoice">
      <div className="with-action">
        <h2 id="invoice">
          {invoice.title} <span className="print-only">{account.name}</span>
        </h2>
        <Button onClick={() => print()}>{invoice.print}</Button>
      </div>
      <Loaded read={read}>
        {({ items, totalCents }) =>
          items.length > 0 ? (
            <Table
              caption={invoice.title}
              columns={columnsOf(totalCents)}
              rows={items.toReversed()}
              rowKey={({ periodStart }) => periodStart}
            />
          ) : (
            <p className="soft">{invoice.empty}</p>
          )
        }
      </Loaded>
    </section>
  );
}

function useColumns(): (totalCents: number) => readonly Column<Line>[] {
  const { t, format } = useTexts();
  const { columns, reasons, what, days, total } = t.packages.invoice;
  return (totalCents) => [
    {
      name: "period",
      title: columns.period,
      cell: (line) => `${format.date(line.periodStart)} – ${format.lastDay(line.periodEnd)}`,
      total,
    },
    { name: "what", title: columns.what, cell: (line) => what(reasons[line.reason], line.package) },
    {
      name: "days",
      title: columns.days,
      isNumber: true,
      cell: (line) => days(format.number(line.days), format.number(line.periodDays)),
    },
    {
      name: "amount",
      title: columns.amount,
      isNumber: true,
      cell: (line) => format.euros(line.amountCents),
      total: format.euros(totalCents),
    },
  ];
}
