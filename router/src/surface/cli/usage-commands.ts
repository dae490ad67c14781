/** `weiche usage …`: an account's usage, and usage records that were set aside. */
import { CommanderError, Option, type Command } from "commander";
import { csvLine } from "../../usage/csv.ts";
import { listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import type { Answer } from "./client.ts";
import { keyName } from "./credits-commands.ts";

export function addUsageCommands(usage: Command, { ask, print, terminal }: Actions): void {
  usage
    .description("what an account used: in its current billing period, or from one German day to another")
    .option("--account <account>")
    .option("--from <date>")
    .option("--to <date>", "included")
    .addOption(new Option("--by <part>").choices(["day", "model", "key", "user"]))
    .option("--csv", "the rows, for a spreadsheet")
    .action(async ({ account, csv, ...wish }: UsageOptions) => {
      if (account === undefined) throw new CommanderError(2, "weiche.account", "say which --account (see --help)");
      const report = viewReport(await ask("showUsage", { query: { account, ...wish } }));
      if (csv) terminal.output.write(usageCsv(report));
      else print(report, (width) => usageText(report, width));
    });
  usage
    .command("refused")
    .description("usage records that were set aside and billed to nobody, youngest first, and why")
    .option("--node <node>", "of this node alone")
    .option("--limit <records>", "", "100")
    .action(async (query: { readonly node?: string; readonly limit: string }) => {
      const refused = await ask("listSetAside", { query });
      print(refused, (width) => listText(refused.map(shown), setAsideColumns, width));
    });
}

interface UsageOptions extends Readonly<Partial<Record<"from" | "to" | "by", string>>> {
  readonly account?: string;
  readonly csv?: boolean;
}

type Report = ReturnType<typeof viewReport>;

/** Each row has the id of its part in one field; keys and users also have their name. */
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

const sumColumns = ["requests", "promptTokens", "completionTokens", "totalTokens", "credits", "estimatedTokens"];

function columnsOf(by: Report["by"]): string[] {
  return [by, ...(by === "key" || by === "user" ? ["name"] : []), ...sumColumns];
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
