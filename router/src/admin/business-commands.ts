/** `weiche credits …` and `weiche audit …`: what runs over all accounts, and what was done to one. */
import { CommanderError, type Command } from "commander";
import type { AuditCheck } from "../accounts/audit.ts";
import type { NoticeView } from "../accounts/notices.ts";
import type { RefusalReport } from "../credits/refusal-report.ts";
import { listText } from "./cli-text.ts";
import type { Actions } from "./cli.ts";

export function addBusinessCommands(program: Command, actions: Actions): void {
  program
    .command("credits")
    .description("usage against quotas and limits")
    .command("evaluate")
    .description("now, instead of within a minute; also writes the invoice lines of periods that have begun")
    .action(() => actions.act("POST", "/credits/evaluate"));
  addAuditCommands(program, actions);
  program
    .command("notices")
    .description("what the people of an account are told in the portal, youngest first")
    .requiredOption("--account <id>")
    .option("--limit <notices>", "", "50")
    .action(async ({ account, limit }: { account: string; limit: string }) => {
      const notices = await actions.ask<NoticeView[]>(
        "GET",
        `/notices?${new URLSearchParams({ account, limit }).toString()}`,
      );
      const items = notices.map(({ at, kind, user, key, facts }) => ({
        at,
        kind,
        user: user?.email,
        key: key?.name,
        facts,
      }));
      actions.print(notices, listText(items, ["at", "kind", "user", "key", "facts"]));
    });
  program
    .command("refusals")
    .description("refused requests of an account in the last 24 hours, and what helps")
    .requiredOption("--account <id>")
    .action(async ({ account }: { account: string }) => {
      const report = await actions.ask<RefusalReport>("GET", `/refusals?account=${encodeURIComponent(account)}`);
      const table = listText(report.codes, ["code", "status", "count", "advice"]);
      actions.print(report, `${report.total} since ${report.since}\n\n${table}`);
    });
}

const columns = ["number", "at", "actor", "source", "action", "object", "result", "details"];

interface AuditOptions {
  readonly account?: string;
  readonly limit?: string;
  readonly before?: string;
}

function addAuditCommands(program: Command, { ask, print, list }: Actions): void {
  const audit = program
    .command("audit")
    .description("who did what to an account, youngest first")
    .option("--account <id>")
    .option("--limit <entries>", "at most 1000", "100")
    .option("--before <number>", "entries older than this one")
    .action(({ account, limit, before }: AuditOptions) => {
      if (account === undefined) throw new CommanderError(2, "weiche.account", "say which --account (see --help)");
      const query = new URLSearchParams({ account, limit: limit!, ...(before === undefined ? {} : { before }) });
      return list(`/audit?${query.toString()}`, columns);
    });
  audit
    .command("verify")
    .description("that no entry was changed, taken out or cut off: of one account, or of all; exit code 1 if one was")
    .action(async (_own: object, command: Command) => {
      const { account } = command.optsWithGlobals<AuditOptions>();
      const check = await ask<AuditCheck>("POST", "/audit/verify", { account });
      print(check, `${check.entries} entries in ${check.chains} chains, ${check.broken.length} chains broken`);
      const first = check.broken[0];
      if (first)
        throw new Error(`the audit log of ${first.accountId} is broken: entry ${first.number} is ${first.why}`);
    });
}
