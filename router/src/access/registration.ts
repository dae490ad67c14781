/** Opening an account by oneself: whoever does is its Owner and signed in. */
import { asId, uuidv7, type AccountId } from "@weiche/shared/ids.ts";
import { insertAccount } from "../accounts/accounts.ts";
import { audited } from "../accounts/audit-log.ts";
import { Refused } from "../accounts/refused.ts";
import { insertUser } from "../accounts/users.ts";
import type { IdentityContext } from "./identity-context.ts";
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
  const waitMs = await throttle.take("register", from.source);
  if (waitMs > 0) return { kind: "throttled", waitMs };
  const hashed = await hashing.hash(normal);
  const accountId = asId<AccountId>(uuidv7(clock));
  const themselves = { ...context, origin: { actor: "nobody", source: from.source } };
  const deed = { action: "account.create", on: { kind: "account", id: accountId } } as const;
  const started = await audited(themselves, deed, async (transaction) => {
    const nowMs = clock.now();
    await insertAccount(transaction, accountId, accountName, nowMs);
    const owner = await insertUser(context, transaction, { accountId, email, role: "owner" });
    if (language) await transaction.updateTable("users").set({ language }).where("id", "=", owner.id).execute();
    await setPassword(transaction, owner.id, hashed, nowMs);
    return startSession(transaction, clock, owner.id, from);
  });
  return { kind: "registered", ...started };
}
