/** The page of invoices: issued ones, net amounts without an invoice, and the billing address. One invoice at `?number=`. */
import { Link } from "wouter";
import type { Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { useListState } from "../../elements/list-state.ts";
import { Page } from "../../elements/page.tsx";
import { Pages, Table, type Column } from "../../elements/table.tsx";
import { useTexts } from "../../messages/messages.ts";
import { AddressCard } from "./address-card.tsx";
import { InvoicePage } from "./invoice-page.tsx";

type Listed = Answer<"listInvoices">;

export default function InvoicesPage() {
  const number = useListState().get("number");
  return number === undefined ? <InvoiceList /> : <InvoicePage number={number} />;
}

function InvoiceList() {
  const { t, format } = useTexts();
  const texts = t.invoices;
  const state = useListState();
  const read = useRead("listInvoices", { query: { page: state.page } });
  const last = state.page === 1 ? read.data?.items[0] : undefined;
  return (
    <Page
      title={t.shell.pages.invoices}
      lead={last ? texts.leads.some(last.number, format.longDay(last.issuedOn)) : texts.leads.none}
    >
      <Loaded read={read}>
        {(data) => (
          <>
            <AddressCard isMissed={!data.hasAddress && data.open.some(({ waitsFor }) => waitsFor === "address")} />
            <OpenPeriods open={data.open} />
            <section className="part" aria-labelledby="issued">
              <h2 id="issued">{texts.list.title}</h2>
              <Issued items={data.items} />
              <Pages state={state} list={data} />
            </section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Issued({ items }: Pick<Listed, "items">) {
  const { t, format } = useTexts();
  const { list, span } = t.invoices;
  if (items.length === 0) return <p className="soft">{list.empty}</p>;
  const columns: readonly Column<Listed["items"][number]>[] = [
    {
      name: "number",
      title: list.columns.number,
      cell: ({ number }) => <Link to={`/invoices?number=${encodeURIComponent(number)}`}>{number}</Link>,
    },
    { name: "issued", title: list.columns.issued, cell: ({ issuedOn }) => format.longDay(issuedOn) },
    {
      name: "period",
      title: list.columns.period,
      cell: ({ firstDay, lastDay }) => span(format.longDay(firstDay), format.longDay(lastDay)),
    },
    { name: "net", title: list.columns.net, isNumber: true, cell: ({ netCents }) => format.euros(netCents) },
    { name: "vat", title: list.columns.vat, isNumber: true, cell: ({ vatCents }) => format.euros(vatCents) },
    { name: "total", title: list.columns.total, isNumber: true, cell: ({ grossCents }) => format.euros(grossCents) },
  ];
  return <Table caption={list.title} columns={columns} rows={items} rowKey={({ number }) => number} />;
}

function OpenPeriods({ open }: Pick<Listed, "open">) {
  const { t, format } = useTexts();
  const texts = t.invoices.open;
  if (open.length === 0) return null;
  const columns: readonly Column<Listed["open"][number]>[] = [
    {
      name: "period",
      title: texts.columns.period,
      cell: ({ firstDay, lastDay }) => t.invoices.span(format.longDay(firstDay), format.longDay(lastDay)),
    },
    {
      name: "next",
      title: texts.columns.next,
      cell: ({ waitsFor, lastDay }) =>
        waitsFor === "period" ? texts.next.period(format.longDay(lastDay)) : texts.next[waitsFor],
    },
    { name: "net", title: texts.columns.net, isNumber: true, cell: ({ netCents }) => format.euros(netCents) },
  ];
  return (
    <section className="part" aria-labelledby="open">
      <h2 id="open">{texts.title}</h2>
      <Table caption={texts.title} columns={columns} rows={open} rowKey={({ lastDay }) => lastDay} />
    </section>
  );
}
