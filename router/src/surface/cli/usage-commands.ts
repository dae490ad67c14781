/** `weiche usage …`: shows an account's usage, usage records that were set aside, and traces of requests. */
import { CommanderError, Option, type Command } from "commander";
import { csvLine } from "../../usage/csv.ts";
import { usageSums } from "../../usage/usage-columns.ts";
import { accountHelp, listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import type { Answer } from "./client.ts";
import { keyName } from "./credits-commands.ts";
import { addTraceCommands } from "./trace-commands.ts";

export function addUsageCommands(usage: Command, actions: Actions): void {
  const { ask, print, terminal } = actions;
  usage
    .description("Show an account's usage in its current billing period or between two days.")
    .option("--account <account>", accountHelp)
    .option("--from <date>", "first day, such as 2027-01-31 (German time)")
    .option("--to <date>", "last day, included (German time)")
    .addOption(
      new Option("--by <part>", "one row per day, model, key or user").choices(["day", "model", "key", "user"]),
    )
    .option("--csv", "print the rows as CSV")
    .action(async ({ account, csv, ...wish }: UsageOptions) => {
      if (account === undefined) throw new CommanderError(2, "weiche.account", "--account is missing (see --help)");
      const report = viewReport(await ask("showUsage", { query: { account, ...wish } }));
      if (csv) terminal.output.write(usageCsv(report));
      else print(report, (width) => usageText(report, width));
    });
  usage
    .command("refused")
    .description("List usage records that were set aside and billed to nobody, newest first, with the reason.")
    .option("--node <node>", "only records of this node")
    .option("--limit <records>", "maximum number of records", "100")
    .action(async (query: { readonly node?: string; readonly limit: string }) => {
      const refused = await ask("listSetAside", { query });
      print(refused, (width) => listText(refused.map(shown), setAsideColumns, width));
    });
  addTraceCommands(usage, actions);
}

interface UsageOptions extends Readonly<Partial<Record<"from" | "to" | "by", string>>> {
  readonly account?: string;
  readonly csv?: boolean;
}

type Report = ReturnType<typeof viewReport>;

/** Each row has a day, a model or an id in the field `by`. Rows of keys and users also have their name. */
function viewReport({ by: [by = "day"], items, ...usage }: Answer<"showUsage">) {
  const { accountId, from, to, periodStart, periodEnd, asOf, totals } = usage;
  return {
    accountId,
    by,
    from,
    to,
    ...(periodStart !== null && { periodStart, periodEnd }),
    asOf,
    totals,
    rows: items.map(({ day, model, key, user, ...sums }) => ({
      [by]: day ?? model ?? key?.id ?? user!.id,
      name: key ? keyName(key) : (user?.email ?? undefined),
      ...sums,
    })),
  };
}

function columnsOf(by: Report["by"]): string[] {
  return [by, ...(by === "key" || by === "user" ? ["name"] : []), ...usageSums];
}

function usageCsv({ by, rows }: Report): string {
  const columns = columnsOf(by);
  const cells = (row: Readonly<Record<string, string | number | undefined>>) =>
    columns.map((column) => row[column] ?? null);
  return [columns, ...rows.map(cells)].map(csvLine).join("");
}

function usageText({ by, from, to, asOf, totals, rows }: Report, width?: number): string {
  return `${from} to ${to}, as of ${asOf}\n\n${listText([...rows, { [by]: "total", ...totals }], columnsOf(by), width)}`;
}

const setAsideColumns = ["at", "node", "request", "reason", "account", "model", "input", "output", "factor"];

function shown(refused: Answer<"listSetAside">[number]) {
  const { requestId, attempt, reason, detail, promptTokens, completionTokens, ...one } = refused;
  return {
    ...one,
    request: `${requestId} (${attempt})`,
    reason: detail === null ? reason : `${reason}: ${detail}`,
    account: one.accountId,
    input: promptTokens,
    output: completionTokens,
  };
}
