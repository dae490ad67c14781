/** `weiche credits …` and `weiche audit …`: what runs over all accounts, and what was done to one. */
import { CommanderError, InvalidArgumentError, type Command } from "commander";
import type { AuditCheck } from "../../rights/audit.ts";
import type { NamedEntry } from "../../rights/audit-page.ts";
import { timeZone } from "../../subscriptions/billing-period.ts";
import type { NoticeView } from "../../accounts/notices.ts";
import type { RefusalReport } from "../../usage/refusal-report.ts";
import type { AccountCredits } from "../operator/account-credits.ts";
import { itemText, listText, query } from "./cli-text.ts";
import type { Actions } from "./cli.ts";

export function addBusinessCommands(program: Command, actions: Actions): void {
  addCreditsCommands(program.command("credits").description("usage against quotas and limits"), actions);
  addAuditCommands(program, actions);
  program
    .command("notices")
    .description("what the people of an account are told in the portal, youngest first")
    .requiredOption("--account <id>")
    .option("--limit <notices>", "", "50")
    .action(async ({ account, limit }: { account: string; limit: string }) => {
      const notices = await actions.ask<NoticeView[]>("GET", `/notices?${query({ account, limit })}`);
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

function addCreditsCommands(credits: Command, { act, ask, print }: Actions): void {
  credits
    .command("show <account>")
    .description("what an account used of its quota in this billing period, by user, key and model; its rate of now")
    .action(async (account: string) => {
      const shown = await ask<AccountCredits>("GET", `/credits?${query({ account })}`);
      print(shown, creditsText(shown));
    });
  credits
    .command("evaluate")
    .description("now, instead of within a minute; also writes the invoice lines of periods that have begun")
    .action(() => act("POST", "/credits/evaluate"));
}

function creditsText({ users, keys, models, ...account }: AccountCredits): string {
  const { lastMinute, perMinute, parallel, parallelMax } = account.rate;
  const of = (used: number, max: number | null) => (max === null ? String(used) : `${used} of ${max}`);
  const summary = {
    ...account,
    package: account.package ?? "none",
    forecast: account.forecast && `${account.forecast.perDay} a day, ${lasting(account.forecast.until)}`,
    rate: `${of(lastMinute, perMinute)} requests in the last minute, ${of(parallel, parallelMax)} at once`,
  };
  const people = users.map((user) => ({ ...user, user: user.email, reason: user.limitReached ? "user-limit" : null }));
  return [
    itemText(summary),
    listText(people, ["user", "used", "limit", "reason", "id"]),
    listText(
      keys.map((key) => ({ ...key, key: key.name })),
      ["key", "user", "used", "limit", "reason", "id"],
    ),
    listText(
      models.map((model) => ({ ...model })),
      ["model", "requests", "promptTokens", "completionTokens", "credits"],
    ),
  ].join("\n\n");
}

function lasting(until: string | null): string {
  return until === null ? "lasts to the end of the period" : `used up at ${until}`;
}

const columns = ["number", "at", "actor", "source", "action", "object", "result", "details"];

interface AuditOptions {
  readonly account?: string;
  readonly actor?: string;
  readonly object?: string;
  readonly action?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit: string;
  readonly before?: string;
}

interface AuditRow extends Omit<NamedEntry, "object"> {
  readonly object: string;
  readonly objectName: string | null;
}

function addAuditCommands(program: Command, { ask, print }: Actions): void {
  const audit = program
    .command("audit")
    .description("who did what to an account, youngest first")
    .option("--account <id>")
    .option("--actor <id>", "who did it: a user, or `operator`")
    .option("--object <id>", "what it was done to: a user, a key or the account")
    .option("--action <action>", "such as key.revoke")
    .option("--since <time>", "an instant, or a German day", (text) => instantOf(text, 0))
    .option("--until <time>", "before that instant, or to the end of that German day", (text) => instantOf(text, 1))
    .option("--limit <entries>", "at most 1000", "100")
    .option("--before <number>", "entries older than this one")
    .action(async ({ account, since, until, ...wish }: AuditOptions) => {
      if (account === undefined) throw new CommanderError(2, "weiche.account", "say which --account (see --help)");
      const asked = query({ account, from: since, to: until, ...wish });
      const entries = await ask<AuditRow[]>("GET", `/audit?${asked}`);
      print(entries, auditText(entries, Number(wish.limit)));
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

function auditText(entries: readonly AuditRow[], limit: number): string {
  const named = entries.map(({ actor, actorName, object, objectName, ...entry }) => ({
    ...entry,
    actor: actorName ?? actor,
    object: objectName === null ? object : `${object} (${objectName})`,
  }));
  const last = entries.at(-1);
  const isCut = last !== undefined && entries.length === limit && last.number > 1;
  return listText(named, columns) + (isCut ? `\n\nolder ones: --before ${last.number}` : "");
}

/** A day is its beginning, or that of a later one. */
function instantOf(text: string, daysLater: number): string {
  try {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return Temporal.Instant.from(text).toString();
    const day = Temporal.PlainDate.from(text, { overflow: "reject" }).add({ days: daysLater });
    return day.toZonedDateTime(timeZone).toInstant().toString();
  } catch {
    throw new InvalidArgumentError("A time looks like 2027-01-31 or 2027-01-31T18:00:00+01:00.");
  }
}
