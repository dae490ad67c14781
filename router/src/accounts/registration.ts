/** Registration: opens an account, makes the person its Owner and signs the person in. */
import type { Language } from "../db/schema.ts";
import { asId, uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { insertAccount } from "./accounts.ts";
import { audited } from "../rights/audit-log.ts";
import { RequestError } from "../rights/request-error.ts";
import { insertUser } from "./users.ts";
import { asThemselves, type IdentityContext } from "../sign-in/identity-context.ts";
import { goodPassword } from "../sign-in/password-rules.ts";
import { setPassword } from "../sign-in/passwords.ts";
import type { Session } from "../sign-in/sessions.ts";
import { startSession, type SignedInFrom } from "../sign-in/sessions.ts";

export interface RegistrationWish {
  readonly accountName: string;
  readonly email: string;
  readonly password: string;
  readonly language?: Language | undefined;
}

type Registered =
  | { readonly kind: "registered"; readonly token: string; readonly session: Session }
  | { readonly kind: "throttled"; readonly waitMs: number };

export async function register(
  context: IdentityContext,
  { accountName, email, password, language }: RegistrationWish,
  from: SignedInFrom,
): Promise<Registered> {
  const { clock, hashing, throttle } = context;
  if (context.registration !== "open")
    throw new RequestError("conflict", "this service has no registration: ask its operator for an invitation");
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
