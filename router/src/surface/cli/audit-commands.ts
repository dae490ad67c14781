/** `weiche audit …`: lists and verifies the audit log. */
import { counted } from "@weiche/shared/program/amounts.ts";
import { CommanderError, InvalidArgumentError, type Command } from "commander";
import { timeZone } from "../../subscriptions/billing-period.ts";
import { accountHelp, listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import { Failed, type Answer } from "./client.ts";

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

export function addAuditCommands(audit: Command, { ask, print }: Actions): void {
  audit
    .description("List an account's audit log, newest first.")
    .option("--account <account>", accountHelp)
    .option("--actor <user>", "only actions by this user (id or e-mail address) or by `operator`")
    .option("--object <object>", "only actions on this user, key or account (id, e-mail address or name)")
    .option("--action <action>", "only this action, such as key.revoke")
    .option(
      "--since <time>",
      "from this day or instant on (2027-01-31 or 2027-01-31T18:00Z; days in German time)",
      (text) => instantOf(text, 0),
    )
    .option("--until <time>", "up to the end of this day, or up to this instant", (text) => instantOf(text, 1))
    .option("--limit <entries>", "maximum number of entries, at most 1000", "100")
    .option("--before <number>", "only entries with a lower number")
    .action(async ({ account, since, until, ...wish }: AuditOptions) => {
      if (account === undefined) throw new CommanderError(2, "weiche.account", "--account is missing (see --help)");
      const { actor, object, ...more } = wish;
      const whose = { actor: await idOf(ask, actor, account), object: await idOf(ask, object, account) };
      const { items } = await ask("listAudit", { query: { account, from: since, to: until, ...more, ...whose } });
      const entries = items.map(({ object: { kind, id, name }, ...entry }) => ({
        ...entry,
        object: `${kind} ${id}`,
        objectName: name,
      }));
      print(entries, (width) => auditText(items, Number(wish.limit), width));
    });
  audit
    .command("verify")
    .description("Verify the audit log of one account or all. Exit with 1 if entries were changed or removed.")
    .action(async (_own: object, command: Command) => {
      const { account } = command.optsWithGlobals<AuditOptions>();
      const check = await ask("verifyAudit", { body: { account } });
      print(
        check,
        () =>
          `${counted(check.entries, "entry", "entries")} in ${counted(check.chains, "chain")}, ${check.broken.length} broken`,
      );
      const first = check.broken[0];
      if (first)
        throw new Error(`the audit log of ${first.accountId} is broken: entry ${first.number} is ${first.why}`);
    });
}

const wholeId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Finds the id of a user, a key or the account. Returns a whole id and `operator` unchanged. */
async function idOf(ask: Actions["ask"], named: string | undefined, account: string): Promise<string | undefined> {
  if (named === undefined || named === "operator" || wholeId.test(named)) return named;
  const user = ask("showUser", { id: named });
  if (named.includes("@")) return (await user).id;
  const key = () => ask("showKey", { id: named, query: { account } });
  return (await idOrNone(user)) ?? (await idOrNone(key())) ?? (await ask("showAccount", { id: named })).id;
}

async function idOrNone(asked: Promise<{ readonly id: string }>): Promise<string | undefined> {
  try {
    return (await asked).id;
  } catch (error) {
    if (error instanceof Failed && error.status === 404) return undefined;
    throw error;
  }
}

function auditText(entries: Answer<"listAudit">["items"], limit: number, width?: number): string {
  const named = entries.map(({ actor, actorName, object: { kind, id, name }, ...entry }) => ({
    ...entry,
    actor: actorName ?? actor,
    object: name === null ? `${kind} ${id}` : `${kind} ${id} (${name})`,
  }));
  const columns = ["number", "at", "actor", "source", "action", "object", "result", "details"];
  const last = entries.at(-1);
  const isCut = last !== undefined && entries.length === limit && last.number > 1;
  return listText(named, columns, width) + (isCut ? `\n\nOlder entries: --before ${last.number}` : "");
}

/** Returns the instant of a text. A day means its German midnight, plus `daysLater` days. */
function instantOf(text: string, daysLater: number): string {
  try {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return Temporal.Instant.from(text).toString();
    const day = Temporal.PlainDate.from(text, { overflow: "reject" }).add({ days: daysLater });
    return day.toZonedDateTime(timeZone).toInstant().toString();
  } catch {
    throw new InvalidArgumentError("A time looks like 2027-01-31 or 2027-01-31T18:00:00+01:00.");
  }
}
