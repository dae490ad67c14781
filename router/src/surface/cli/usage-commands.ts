/** `weiche usage …`: what an account used, and what was set aside. */
import { CommanderError, Option, type Command } from "commander";
import { csvLine } from "../../usage/csv.ts";
import { usageParts } from "../../usage/usage-parts.ts";
import type { RefusedUsage } from "../../usage/usage-refused.ts";
import type { UsageReport } from "../../usage/usage-report.ts";
import { listText, query } from "./cli-text.ts";
import type { Actions } from "./cli.ts";

export function addUsageCommands(usage: Command, { ask, print }: Actions): void {
  usage
    .description("what an account used: in its current billing period, or from one German day to another")
    .option("--account <id>")
    .option("--from <date>")
    .option("--to <date>", "included")
    .addOption(new Option("--by <part>").choices(usageParts))
    .option("--csv", "the rows, for a spreadsheet")
    .action(async ({ account, csv, ...wish }: UsageOptions) => {
      if (account === undefined) throw new CommanderError(2, "weiche.account", "say which --account (see --help)");
      const report = await ask<UsageReport>("GET", `/usage?${query({ account, ...wish })}`);
      if (csv) process.stdout.write(usageCsv(report));
      else print(report, usageText(report));
    });
  usage
    .command("refused")
    .description("usage records that were set aside and billed to nobody, youngest first, and why")
    .option("--node <node>", "of this node alone")
    .option("--limit <records>", "", "100")
    .action(async (wish: { readonly node?: string; readonly limit: string }) => {
      const refused = await ask<RefusedUsage[]>("GET", `/usage/refused?${query({ ...wish })}`);
      print(refused, listText(refused.map(shown), refusedColumns));
    });
}

const refusedColumns = ["at", "node", "request", "reason", "account", "model", "input", "output", "factor"];

function shown({ requestId, attempt, reason, detail, promptTokens, completionTokens, ...one }: RefusedUsage) {
  return {
    ...one,
    request: `${requestId} (${attempt})`,
    reason: detail === null ? reason : `${reason}: ${detail}`,
    account: one.accountId,
    input: promptTokens,
    output: completionTokens,
  };
}

interface UsageOptions extends Readonly<Partial<Record<"from" | "to" | "by", string>>> {
  readonly account?: string;
  readonly csv?: boolean;
}

function usageCsv({ by, rows }: UsageReport): string {
  const named = by === "key" || by === "user" ? ["name" as const] : [];
  const columns = [by, ...named, "requests", "promptTokens", "completionTokens", "totalTokens", "credits"] as const;
  return [columns, ...rows.map((row) => columns.map((column) => row[column] ?? null))].map(csvLine).join("");
}

function usageText({ by, from, to, asOf, totals, rows }: UsageReport): string {
  const columns = ["requests", "promptTokens", "completionTokens", "totalTokens", "credits"];
  const named = by === "key" || by === "user" ? ["name"] : [];
  const table = listText(
    [...rows.map((row) => ({ ...row })), { [by]: "total", ...totals }],
    [by, ...named, ...columns],
  );
  return `${from} to ${to}, as of ${asOf}\n\n${table}`;
}
