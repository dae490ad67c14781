/** `weiche invoices …`: lists, shows and exports invoices, and shows and sets billing addresses. */
import { Option, type Command } from "commander";
import { csvLine } from "../../../usage/csv.ts";
import type { Actions } from "../actions.ts";
import { euros } from "../charge.ts";
import { accountHelp, itemText, listText } from "../cli-text.ts";
import type { Answer, Ask } from "../client.ts";

type Invoice = Answer<"showInvoice">;

interface Filter {
  readonly account?: string;
  readonly from?: string;
  readonly to?: string;
}

export function addInvoiceCommands(invoices: Command, { ask, print, printList, terminal, wantsJson }: Actions): void {
  filtered(invoices.command("list"))
    .description("List issued invoices in the order of their numbers.")
    .option("--waiting", "list ended billing periods without an invoice instead, with what they wait for")
    .action(async ({ waiting, ...filter }: Filter & { readonly waiting?: true }) => {
      if (waiting) {
        const periods = await ask("listWaitingInvoices");
        print(periods, (width) => listText(periods.map(waitingRow), waitingColumns, width));
        return;
      }
      const all: object[] = [];
      for await (const page of issued(ask, filter)) all.push(...page.map(rowOf));
      printList(all, [...columns]);
    });
  invoices
    .command("show <number>")
    .description("Show an invoice with its lines.")
    .action(async (id: string) => {
      const invoice = await ask("showInvoice", { id });
      print(invoice, (width) => invoiceText(invoice, width));
    });
  filtered(invoices.command("export"))
    .description("Write issued invoices to standard output, as CSV with one invoice a line, or as lines of JSON.")
    .addOption(new Option("--format <format>", "the format").choices(["csv", "json"]).default("csv"))
    .action(async ({ format, ...filter }: Filter & { readonly format: "csv" | "json" }) => {
      const asJson = format === "json" || wantsJson();
      if (!asJson) terminal.output.write(csvLine(columns));
      for await (const page of issued(ask, filter))
        for (const invoice of page) {
          const row: Readonly<Record<string, string | number | null>> = rowOf(invoice);
          terminal.output.write(asJson ? `${JSON.stringify(invoice)}\n` : csvLine(columns.map((name) => row[name]!)));
        }
    });
  addAddressCommand(invoices, { ask, print });
}

function filtered(command: Command): Command {
  return command
    .option("--account <account>", accountHelp)
    .option("--from <date>", "first day of issue, such as 2027-01-31 (German time)")
    .option("--to <date>", "last day of issue, included");
}

interface Address {
  readonly account: string;
  readonly name?: string;
  readonly street?: string;
  readonly postalCode?: string;
  readonly city?: string;
  readonly country?: string;
  readonly vatId?: string;
  readonly email?: string;
}

function addAddressCommand(invoices: Command, { ask, print }: Pick<Actions, "ask" | "print">): void {
  invoices
    .command("address")
    .description("Show the name and address on an account's next invoices, or change parts of it.")
    .requiredOption("--account <account>", accountHelp)
    .option("--name <name>", "the receiver")
    .option("--street <street>", "street and number")
    .option("--postal-code <code>", "the postal code")
    .option("--city <city>", "the city")
    .option("--country <code>", "two letters, such as DE")
    .option("--vat-id <id>", "the VAT id; an empty text removes it")
    .option("--email <address>", "the address for questions about invoices; an empty text removes it")
    .action(async ({ account, ...changes }: Address) => {
      const query = { account };
      let { billing } = await ask("showBilling", { query });
      if (Object.keys(changes).length > 0) {
        const body = { vatId: null, email: null, ...billing, ...changes };
        ({ billing } = await ask("setBilling", { query, body }));
      }
      print(billing, () => (billing ? itemText(billing) : "none: the account's periods wait for a billing address"));
    });
}

/** Reads all pages. */
async function* issued(ask: Ask, filter: Filter): AsyncGenerator<readonly Invoice[], void, undefined> {
  for (let after: string | null | undefined; after !== null;) {
    const page: Answer<"listIssuedInvoices"> = await ask("listIssuedInvoices", { query: { ...filter, after } });
    yield page.items;
    ({ after } = page);
  }
}

/** The columns of the CSV, which the runbook describes. */
const columns = [
  ...["number", "issuedOn", "firstDay", "lastDay", "accountId", "name", "country", "vatId"],
  ...["net", "vatPercent", "vat", "gross", "note"],
] as const;

function rowOf({ number, issuedOn, firstDay, lastDay, accountId, buyer, note, ...sums }: Invoice) {
  const { name, country, vatId } = buyer;
  const { netCents, vatPercent, vatCents, grossCents } = sums;
  return {
    ...{ number, issuedOn, firstDay, lastDay, accountId, name, country, vatId, vatPercent, note },
    net: amount(netCents),
    vat: amount(vatCents),
    gross: amount(grossCents),
  };
}

const waitingColumns = ["firstDay", "lastDay", "net", "waitsFor", "accountName", "accountId"];

function waitingRow({ netCents, ...period }: Answer<"listWaitingInvoices">[number]) {
  return { ...period, net: amount(netCents), waitsFor: waits[period.waitsFor] };
}

const waits = {
  period: "the end of the period",
  address: "a billing address of the account",
  operator: "`invoices` in router.yaml",
  earlier: "nothing: it ended before invoices.since",
} as const;

/** An amount in euros for spreadsheets. */
function amount(cents: number): string {
  return euros(cents).replace(" EUR", "");
}

function invoiceText({ seller, buyer, lines, ...invoice }: Invoice, width?: number): string {
  const { netCents, vatPercent, vatCents, grossCents, note } = invoice;
  const rows = lines.map(({ netCents: cents, ...line }) => ({
    ...line,
    days: `${line.days} of ${line.periodDays}`,
    net: euros(cents),
  }));
  return [
    itemText({
      number: invoice.number,
      issued: invoice.issuedOn,
      period: `${invoice.firstDay} to ${invoice.lastDay}`,
      from: [seller.name, ...seller.address].join(", "),
      to: [buyer.name, buyer.street, `${buyer.postalCode} ${buyer.city}`, buyer.country].join(", "),
      "VAT id": buyer.vatId,
      account: invoice.accountId,
    }),
    listText(rows, ["reason", "package", "firstDay", "lastDay", "days", "net"], width),
    itemText({ net: euros(netCents), [`VAT ${vatPercent} %`]: euros(vatCents), total: euros(grossCents), note }),
  ].join("\n\n");
}
