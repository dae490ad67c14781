/**
 * Repeats the actions that took rights away after a backup was written. Without this, keys that were revoked since would
 * be valid again. It reads the routers' logs, which have a line for every audit entry. Actions that gave rights (new keys,
 * users, accounts) cannot be repeated, because no log has their secrets; they are counted.
 */
import { asId, type AccountId, type KeyId, type UserId } from "@weiche/shared/ids.ts";
import { createAccounts } from "../accounts/accounts.ts";
import type { AccountsContext } from "../rights/accounts-context.ts";
import { auditMessage, type loggedDeed } from "../rights/audit-entry.ts";
import { audited } from "../rights/audit-log.ts";
import { RequestError } from "../rights/request-error.ts";
import { lockUser } from "../rights/rights.ts";
import { hashOfNoPassword } from "../sign-in/password-hashing.ts";
import { setPassword } from "../sign-in/passwords.ts";

type LoggedDeed = ReturnType<typeof loggedDeed>;

/** Numbers of logged actions, by action. */
export interface Replayed {
  readonly repeated: Readonly<Record<string, number>>;
  /** Done after the backup and missing in the restored database. */
  readonly lost: Readonly<Record<string, number>>;
}

/** Clocks of routers and database may differ by this much. Repeating an action of the backup changes nothing. */
const marginMs = 300_000;

/** Reads the logged actions that may have happened after the backup, oldest first. Other lines are ignored. */
export async function readDeeds(lines: AsyncIterable<string>, backupAt: string): Promise<readonly LoggedDeed[]> {
  const sinceMs = Date.parse(backupAt) - marginMs;
  const deeds: LoggedDeed[] = [];
  for await (const line of lines) {
    const deed = readDeed(line);
    if (deed?.result === "done" && Date.parse(deed.at) >= sinceMs) deeds.push(deed);
  }
  return deeds.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at) || a.number - b.number);
}

function readDeed(line: string): LoggedDeed | undefined {
  if (!line.includes(`"msg":"${auditMessage}"`)) return undefined;
  try {
    return JSON.parse(line.slice(line.indexOf("{"))) as LoggedDeed;
  } catch {
    return undefined; // the incomplete last line of a killed router
  }
}

/** Repeats the actions. `backupAt`: when the backup was written; only later actions count as lost. */
export async function replayDeeds(
  context: AccountsContext,
  deeds: readonly LoggedDeed[],
  backupAt: string,
): Promise<Replayed> {
  const repeats = repeatsOf(context);
  const replayed = { repeated: {} as Record<string, number>, lost: {} as Record<string, number> };
  for (const deed of deeds) {
    const outcome = await repeat(repeats[deed.action], deed);
    if (outcome === "lost" && Date.parse(deed.at) < Date.parse(backupAt)) continue; // the backup contains it
    if (outcome !== "needless") replayed[outcome][deed.action] = (replayed[outcome][deed.action] ?? 0) + 1;
  }
  return replayed;
}

type Repeat = (id: string, deed: LoggedDeed) => Promise<unknown>;

async function repeat(how: Repeat | undefined, deed: LoggedDeed): Promise<keyof Replayed | "needless"> {
  if (deed.action.startsWith("session.")) return "needless"; // a restored database has no sessions
  if (!how) return "lost";
  try {
    const done = await how(deed.object.split(" ")[1] ?? "", deed);
    return done === undefined ? "lost" : "repeated";
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    // The backup does not contain the object, so it has no rights.
    return error.kind === "not_found" ? "needless" : "lost";
  }
}

/** How each action that takes rights away is repeated. If a function resolves with undefined, the action is lost. */
function repeatsOf(context: AccountsContext): Readonly<Record<string, Repeat>> {
  const { keys, life, users } = createAccounts(context);
  const losePassword: Repeat = (id) => giveNoPassword(context, asId<UserId>(id));
  return {
    "account.block": (id) => life.setBlocked(asId<AccountId>(id), true).then(() => true),
    "account.unblock": (id) => life.setBlocked(asId<AccountId>(id), false).then(() => true),
    "account.delete": (id) => life.delete(asId<AccountId>(id)),
    "key.revoke": (id) => keys.revoke(asId<KeyId>(id)),
    "key.regenerate": async (_id, { replaces }) => replaces && keys.revoke(asId<KeyId>(replaces)),
    "user.block": (id) => users.setBlocked(asId<UserId>(id), true),
    "user.unblock": (id) => users.setBlocked(asId<UserId>(id), false),
    "user.delete": (id) => users.delete(asId<UserId>(id)),
    "user.update": async (id, { role }) => role && users.update(asId<UserId>(id), { role }),
    "user.change-password": losePassword,
    "user.reset-password": losePassword,
  };
}

/** Removes a password that was changed after the backup, so that the old one is not valid. The user requests a reset link. */
function giveNoPassword(context: AccountsContext, id: UserId): Promise<UserId> {
  return audited(context, { action: "user.reset-password", on: { kind: "user", id } }, async (transaction) => {
    await lockUser(transaction, id);
    const credentials = transaction.selectFrom("credentials").select("userId").where("userId", "=", id);
    if (!(await credentials.executeTakeFirst())) throw new RequestError("not_found", "the user never joined");
    await setPassword(transaction, id, hashOfNoPassword(), context.clock.now());
    return id;
  });
}
