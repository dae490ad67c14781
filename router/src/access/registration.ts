/** Opening an account by oneself: whoever does is its Owner and signed in. */
import { asId, uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { insertAccount } from "../accounts/accounts.ts";
import { audited } from "../accounts/audit-log.ts";
import { Refused } from "../accounts/refused.ts";
import { insertUser } from "../accounts/users.ts";
import { asThemselves, type IdentityContext } from "./identity-context.ts";
import { goodPassword } from "./password-rules.ts";
import { setPassword } from "./passwords.ts";
import type { Language, Session } from "./session.ts";
import { startSession, type SignedInFrom } from "./sessions.ts";

export interface RegistrationWish {
  readonly accountName: string;
  readonly email: string;
  readonly password: string;
  readonly language?: Language | undefined;
}

export type Registered =
  | { readonly kind: "registered"; readonly token: string; readonly session: Session }
  | { readonly kind: "throttled"; readonly waitMs: number };

export async function register(
  context: IdentityContext,
  { accountName, email, password, language }: RegistrationWish,
  from: SignedInFrom,
): Promise<Registered> {
  const { clock, hashing, throttle } = context;
  if (context.registration !== "open") throw new Refused("conflict", "accounts are opened by the operator here");
  const normal = goodPassword(password);
  const { waitMs } = await throttle.take("register", { source: from.source });
  if (waitMs > 0) return { kind: "throttled", waitMs };
  const hashed = await hashing.hash(normal, { source: from.source, isKnown: false });
  const accountId = asId<AccountId>(uuidv7(clock));
  const id = asId<UserId>(uuidv7(clock));
  const deed = { action: "account.create", on: { kind: "account", id: accountId } } as const;
  const started = await audited(asThemselves(context, id, from.source), deed, async (transaction) => {
    const nowMs = clock.now();
    await insertAccount(transaction, accountId, accountName, nowMs);
    await insertUser(context, transaction, { id, accountId, email, role: "owner" });
    if (language) await transaction.updateTable("users").set({ language }).where("id", "=", id).execute();
    await setPassword(transaction, id, hashed, nowMs);
    return startSession(transaction, clock, id, from);
  });
  return { kind: "registered", ...started };
}
