/** One invoice, as it is printed. */
import type { Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Button, ButtonLink } from "../../elements/button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { Table, type Column } from "../../elements/table.tsx";
import { useTexts } from "../../messages/messages.ts";
import { AddressLines } from "./address-lines.tsx";

type Invoice = Answer<"showInvoice">;

export function InvoicePage({ number }: { readonly number: string }) {
  const { t } = useTexts();
  const texts = t.invoices.one;
  const read = useRead("showInvoice", { params: { id: number } });
  return (
    <Page
      title={texts.title(number)}
      actions={
        <>
          <ButtonLink to="/invoices">{texts.back}</ButtonLink>
          <Button kind="primary" disabled={!read.data} onClick={() => print()}>
            {texts.print}
          </Button>
        </>
      }
    >
      <Loaded read={read}>{(invoice) => <Paper invoice={invoice} />}</Loaded>
    </Page>
  );
}

function Paper({ invoice }: { readonly invoice: Invoice }) {
  const { t, format } = useTexts();
  const texts = t.invoices.one;
  const { seller, buyer, note } = invoice;
  return (
    <article className="card invoice paper" aria-label={texts.title(invoice.number)}>
      <div className="paper-heads">
        <address aria-label={texts.from}>
          <strong>{seller.name}</strong>
          {seller.address.map((line) => (
            <span key={line}>{line}</span>
          ))}
          {seller.email !== null && <span>{seller.email}</span>}
        </address>
        <address aria-label={texts.to}>
          <AddressLines billing={buyer} />
        </address>
      </div>
      <h2>{texts.title(invoice.number)}</h2>
      <dl className="facts">
        <dt>{texts.number}</dt>
        <dd>{invoice.number}</dd>
        <dt>{texts.issued}</dt>
        <dd>{format.longDay(invoice.issuedOn)}</dd>
        <dt>{texts.period}</dt>
        <dd>{t.invoices.span(format.longDay(invoice.firstDay), format.longDay(invoice.lastDay))}</dd>
      </dl>
      <Lines lines={invoice.lines} />
      <Sums invoice={invoice} />
      {note !== null && <p>{note}</p>}
      <footer className="soft">
        {seller.vatId !== null && <span>{texts.vatId(seller.vatId)}</span>}
        {seller.taxNumber !== null && <span>{texts.taxNumber(seller.taxNumber)}</span>}
        {seller.bank !== null && <span>{texts.bank(seller.bank)}</span>}
      </footer>
    </article>
  );
}

function Lines({ lines }: Pick<Invoice, "lines">) {
  const { t, format } = useTexts();
  const { columns, reasons, what, days } = t.invoices.one;
  const shown: readonly Column<Invoice["lines"][number]>[] = [
    { name: "what", title: columns.what, cell: (line) => what(reasons[line.reason], line.package) },
    {
      name: "period",
      title: columns.period,
      cell: (line) => t.invoices.span(format.longDay(line.firstDay), format.longDay(line.lastDay)),
    },
    {
      name: "days",
      title: columns.days,
      isNumber: true,
      cell: (line) => days(format.number(line.days), format.number(line.periodDays)),
    },
    { name: "net", title: columns.net, isNumber: true, cell: ({ netCents }) => format.euros(netCents) },
  ];
  return (
    <Table
      caption={columns.what}
      columns={shown}
      rows={lines}
      rowKey={({ firstDay, netCents }) => `${firstDay} ${netCents}`}
    />
  );
}

function Sums({ invoice }: { readonly invoice: Invoice }) {
  const { t, format } = useTexts();
  const { net, vat, total, sums } = t.invoices.one;
  const { netCents, vatPercent, vatCents, grossCents } = invoice;
  return (
    <dl className="sums number" aria-label={sums}>
      <dt>{net}</dt>
      <dd>{format.euros(netCents)}</dd>
      <dt>{vat(format.number(vatPercent))}</dt>
      <dd>{format.euros(vatCents)}</dd>
      <dt className="strong">{total}</dt>
      <dd className="strong">{format.euros(grossCents)}</dd>
    </dl>
  );
}
