/** `weiche credits …`: shows an account's use of its quota, and evaluates all accounts. */
import type { Command } from "commander";
import { mainSums } from "../../usage/usage-columns.ts";
import { itemText, listText } from "./cli-text.ts";
import type { Actions } from "./actions.ts";
import type { Ask } from "./client.ts";

export function addCreditsCommands(credits: Command, { ask, print, printItem }: Actions): void {
  credits
    .command("show <account>")
    .description("Show an account's credits used in this billing period by user, key and model, and its request rate.")
    .action(async (account: string) => {
      const shown = await accountCredits(ask, account);
      print(shown, (width) => creditsText(shown, width));
    });
  credits
    .command("evaluate")
    .description("Evaluate quotas and limits now, and write due invoice lines and invoices.")
    .action(async () => printItem(await ask("evaluateCredits")));
}

/** Each of the three lists adds up to the account's use, highest use first. */
async function accountCredits(ask: Ask, account: string) {
  const {
    own: _own,
    accountId: _account,
    checklist: _steps,
    ...credits
  } = await ask("showCredits", { query: { account } });
  const usedBy = async (by: string) =>
    credits.periodStart === null ? [] : (await ask("showUsage", { query: { account, by } })).items;
  const query = { account, sort: "used", order: "desc" };
  const [users, keys, byUser, byKey, models] = await Promise.all([
    ask("listUsers", { query }),
    ask("listKeys", { query }),
    usedBy("user"),
    usedBy("key"),
    usedBy("model"),
  ]);
  const people = new Set(users.items.map(({ id }) => id));
  const known = new Set(keys.items.map(({ id }) => id));
  const isGone = ({ state }: { readonly state: string }) => state === "revoked" || state === "expired";
  return {
    ...credits,
    users: heaviestFirst([
      ...users.items.map(({ id, email, creditsUsed: used, creditLimit: limit, limitReached }) => ({
        ...{ id, email, used, limit, limitReached },
      })),
      // Users who were deleted after they used credits.
      ...byUser
        .filter(({ user }) => !people.has(user!.id))
        .map(({ user, credits: used }) => ({ id: user!.id, email: user!.id, used, limit: null, limitReached: false })),
    ]),
    keys: heaviestFirst([
      ...keys.items
        .filter((key) => !isGone(key) || Number(key.creditsUsed) > 0)
        .map(({ id, name, userEmail: user, creditsUsed: used, creditLimit: limit, reason }) => ({
          ...{ id, name, user, used, limit, reason },
        })),
      // Playgrounds.
      ...byKey
        .filter(({ key }) => !known.has(key!.id))
        .map(({ key, credits: used }) => ({
          ...{ id: key!.id, name: keyName(key!) ?? key!.id, user: null, used, limit: null, reason: null },
        })),
    ]),
    models,
  };
}

/** Returns undefined if the key and its user no longer exist. */
export function keyName(key: { readonly name: string | null; readonly userEmail: string | null }): string | undefined {
  return key.name ?? (key.userEmail === null ? undefined : `playground of ${key.userEmail}`);
}

function heaviestFirst<Part extends { readonly used: string }>(parts: readonly Part[]): readonly Part[] {
  return parts.toSorted((a, b) => Number(b.used) - Number(a.used));
}

function creditsText(
  { users, keys, models, ...account }: Awaited<ReturnType<typeof accountCredits>>,
  width?: number,
): string {
  const { lastMinute, perMinute, parallel, parallelMax } = account.rate;
  const of = (used: number, max: number | null) => (max === null ? String(used) : `${used} of ${max}`);
  const summary = {
    ...account,
    package: account.package ?? "none",
    forecast: account.forecast && `${account.forecast.perDay} a day, ${lasting(account.forecast.until)}`,
    rate: `${of(lastMinute, perMinute)} requests in the last minute, ${of(parallel, parallelMax)} at once`,
  };
  const people = users.map((user) => ({ ...user, user: user.email, reason: user.limitReached ? "user-limit" : null }));
  const named = keys.map((key) => ({ ...key, key: key.name }));
  return [
    itemText(summary),
    listText(people, ["user", "used", "limit", "reason", "id"], width),
    listText(named, ["key", "user", "used", "limit", "reason", "id"], width),
    listText(models, ["model", ...mainSums], width),
  ].join("\n\n");
}

function lasting(until: string | null): string {
  return until === null ? "quota lasts to the end of the period" : `quota used up at ${until}`;
}
