/** What an account used of its quota in this billing period, and who and what used it. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import { asId, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import { listKeys, type KeyReason } from "../../accounts/key-list.ts";
import type { KeyState } from "../../accounts/key-state.ts";
import { rowsMax } from "../../rights/list-page.ts";
import { listUsers } from "../../accounts/user-list.ts";
import { viewCredits, type CreditsView } from "../../usage/credits-view.ts";
import { reportUsage, type UsageReport } from "../../usage/usage-report.ts";
import type { Database } from "../../db/database.ts";
import type { Limiter } from "../../limits/limiter.ts";

/** Amounts of credits with three places. Each of the three lists, heaviest first, adds up to what the account used. */
export interface AccountCredits extends Omit<CreditsView, "own"> {
  readonly users: readonly UserCredits[];
  readonly keys: readonly KeyCredits[];
  readonly models: UsageReport["rows"];
}

interface UserCredits {
  readonly id: string;
  readonly email: string;
  readonly used: string;
  readonly limit: string | null;
  readonly limitReached: boolean;
}

interface KeyCredits {
  readonly id: string;
  readonly name: string;
  /** null: the key of a test chat, which its name tells. */
  readonly user: string | null;
  readonly used: string;
  readonly limit: string | null;
  /** Why it is not usable; null: it is. */
  readonly reason: KeyReason | null;
}

export interface AccountCreditsContext {
  readonly accounts: Pick<Accounts, "show">;
  readonly database: Database;
  readonly limiter: Pick<Limiter, "use">;
  readonly clock: Clock;
}

export async function viewAccountCredits(
  context: AccountCreditsContext,
  accountId: AccountId,
): Promise<AccountCredits> {
  const { accounts, database, limiter, clock } = context;
  const viewer = asId<UserId>((await accounts.show(accountId)).ownerUserId);
  const { own: _ofOwner, ...credits } = await viewCredits(database, limiter, clock, accountId, viewer);
  const used = async (by: "user" | "key" | "model") =>
    credits.periodStart === null ? [] : (await reportUsage(database, clock, accountId, { by })).rows;
  return {
    ...credits,
    users: await usersOf(context, accountId, await used("user")),
    keys: await keysOf(context, accountId, await used("key")),
    models: await used("model"),
  };
}

type Rows = UsageReport["rows"];

const all = { limit: rowsMax, offset: 0, sort: "used", order: "desc" } as const;

/** Deleted ones, too, if they used something. */
async function usersOf({ database, clock }: AccountCreditsContext, accountId: AccountId, used: Rows) {
  const { items } = await listUsers(database, accountId, {}, all, clock.now());
  const there = new Set<string>(items.map(({ id }) => id));
  return heaviestFirst([
    ...items.map(({ id, email, creditsUsed, creditLimit: limit, limitReached }) => ({
      id,
      email,
      used: creditsUsed,
      limit,
      limitReached,
    })),
    ...used.flatMap(({ user, name, credits }) =>
      there.has(user!) ? [] : [{ id: user!, email: name ?? user!, used: credits, limit: null, limitReached: false }],
    ),
  ]);
}

/** Those that can be used or were, and test chats. */
async function keysOf({ database, clock }: AccountCreditsContext, accountId: AccountId, used: Rows) {
  const { items } = await listKeys(database, accountId, {}, all, clock.now());
  const there = new Set<string>(items.map(({ id }) => id));
  const isGone = ({ state }: { readonly state: KeyState }) => state === "revoked" || state === "expired";
  return heaviestFirst([
    ...items
      .filter((key) => !isGone(key) || Number(key.creditsUsed) > 0)
      .map(({ id, name, userEmail: user, creditsUsed, creditLimit: limit, reason }) => ({
        id,
        name,
        user,
        used: creditsUsed,
        limit,
        reason,
      })),
    ...used.flatMap(({ key, name, credits }) =>
      there.has(key!) ? [] : [{ id: key!, name: name ?? key!, user: null, used: credits, limit: null, reason: null }],
    ),
  ]);
}

function heaviestFirst<Part extends { readonly used: string }>(parts: readonly Part[]): readonly Part[] {
  return parts.toSorted((a, b) => Number(b.used) - Number(a.used));
}
