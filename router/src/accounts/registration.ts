/**
 * Registration: opens an account, makes the person its Owner and signs the person in. If the router sends mail, the address
 * must be confirmed first, by a link at which the person chooses the password.
 */
import { asId, uuidv7, type AccountId, type UserId } from "@weiche/shared/ids.ts";
import { instantText, instantValue } from "../db/database.ts";
import type { Language, Theme } from "../db/schema.ts";
import { newAddress } from "../mail/email-address.ts";
import { confirmationLetter, existingAccountLetter, welcomeLetter } from "../mail/registration-letters.ts";
import type { Mail } from "../mail/mail.ts";
import { audited } from "../rights/audit-log.ts";
import { plainRow } from "../rights/plain-row.ts";
import { RequestError } from "../rights/request-error.ts";
import { asThemselves, type IdentityContext } from "../sign-in/identity-context.ts";
import { goodPassword } from "../sign-in/password-rules.ts";
import { setPassword, takeLink } from "../sign-in/passwords.ts";
import { hashToken, linkTo, makeToken } from "../sign-in/secret-token.ts";
import { startSession, type Session, type SignedInFrom } from "../sign-in/sessions.ts";
import { insertAccount } from "./accounts.ts";
import { insertUser } from "./users.ts";

interface RegistrationWish {
  readonly accountName: string;
  readonly email: string;
  /** Required only if the router sends no mail. */
  readonly password?: string | undefined;
  readonly language?: Language | undefined;
  /** Required if the operator has terms. */
  readonly termsAccepted?: true | undefined;
}

interface Confirmation {
  readonly token: string;
  readonly password: string;
  readonly language?: Language | undefined;
  readonly theme?: Theme | undefined;
}

type Registered =
  | { readonly kind: "registered"; readonly token: string; readonly session: Session }
  /** A link to confirm the address was mailed. */
  | { readonly kind: "mailed" }
  | { readonly kind: "throttled"; readonly waitMs: number };

/** How long a link to confirm an address works. */
export const registrationMsMax = 24 * 3_600_000;

export function createRegistration(context: IdentityContext) {
  const { clock, hashing, throttle, mail, portalUrl } = context;
  const { kysely } = context.database;

  /** Finds a registration by its link. Throws `RequestError` if the link does not work. */
  async function find(token: string, source: string) {
    const taken = await takeLink(throttle, source);
    const open = kysely.selectFrom("registrations").selectAll().where("tokenHash", "=", hashToken(token));
    const row = await open.where("expiresAt", ">", instantValue(clock.now())).executeTakeFirst();
    if (!row) throw linkIsOver();
    await taken.giveBack();
    return row;
  }

  async function open({ email, language, theme, ...wish }: NewAccount, from: SignedInFrom) {
    const hashed = await hashing.hash(wish.password, { source: from.source, isKnown: false });
    const accountId = asId<AccountId>(uuidv7(clock));
    const id = asId<UserId>(uuidv7(clock));
    const details = { terms: wish.terms ?? undefined };
    const deed = { action: "account.create", on: { kind: "account", id: accountId }, details } as const;
    return audited(asThemselves(context, id, from.source), deed, async (transaction) => {
      const nowMs = clock.now();
      if (wish.tokenHash !== undefined) {
        const used = transaction.deleteFrom("registrations").where("tokenHash", "=", wish.tokenHash);
        if ((await used.executeTakeFirst()).numDeletedRows !== 1n) throw linkIsOver();
        await throttle.recognise(from.source, email, ["login"], transaction);
      }
      await insertAccount(transaction, accountId, wish.accountName, nowMs);
      await insertUser(context, transaction, { id, accountId, email, role: "owner" });
      if (language || theme)
        await transaction.updateTable("users").set({ language, theme }).where("id", "=", id).execute();
      await setPassword(transaction, id, hashed, nowMs);
      return startSession(transaction, clock, id, from);
    });
  }

  /** Mails a link. The answer does not reveal whether somebody has the address: then the mail says so. */
  async function mailLink(mailer: Pick<Mail, "send">, wish: RegistrationWish): Promise<void> {
    const email = newAddress(wish.email);
    const token = makeToken();
    const nowMs = clock.now();
    const expiresAtMs = nowMs + registrationMsMax;
    const row = {
      tokenHash: hashToken(token),
      accountName: wish.accountName.trim(),
      language: wish.language ?? null,
      terms: context.terms ?? null,
      createdAt: instantText(nowMs),
      expiresAt: instantText(expiresAtMs),
    };
    const known = await kysely.selectFrom("users").select("language").where("email", "=", email).executeTakeFirst();
    await kysely
      .insertInto("registrations")
      .values({ email, ...row })
      .onConflict((conflict) => conflict.column("email").doUpdateSet(row))
      .execute();
    const letter = known
      ? existingAccountLetter(known.language, { portalUrl })
      : confirmationLetter(row.language, { ...wish, url: linkTo(portalUrl, "confirm", token), expiresAtMs });
    // Not awaited: the time of the answer must not reveal whether somebody has the address.
    void mailer.send(email, letter);
  }

  return {
    async register(wish: RegistrationWish, from: SignedInFrom): Promise<Registered> {
      if (context.registration !== "open")
        throw new RequestError("conflict", "this service has no registration: ask its operator for an invitation");
      if (context.terms !== undefined && !wish.termsAccepted) throw missing("termsAccepted");
      if (!mail && wish.password === undefined) throw missing("password");
      const normal = mail ? undefined : goodPassword(wish.password!);
      const { waitMs } = await throttle.take("register", { source: from.source, whom: wish.email });
      if (waitMs > 0) return { kind: "throttled", waitMs };
      if (mail) {
        await mailLink(mail, wish);
        return { kind: "mailed" };
      }
      const started = await open({ ...wish, password: normal!, terms: context.terms ?? null }, from);
      return { kind: "registered", ...started };
    },

    /** Shows a registration without consuming its link. */
    async preview(token: string, source: string) {
      const { accountName, email, expiresAt } = await find(token, source);
      return plainRow({ accountName, email, expiresAt });
    },

    /** Consumes the link, opens the account and signs its Owner in. */
    async confirm({ token, password, language, theme }: Confirmation, from: SignedInFrom) {
      const normal = goodPassword(password);
      const { accountName, email, tokenHash, terms, ...row } = await find(token, from.source);
      const spoken = language ?? row.language ?? undefined;
      const wish = { accountName, email, tokenHash, terms, password: normal, language: spoken, theme };
      const started = await open(wish, from);
      if (mail) void mail.send(email, welcomeLetter(spoken ?? null, { accountName, portalUrl }));
      return started;
    },
  };
}

interface NewAccount {
  readonly accountName: string;
  readonly email: string;
  readonly password: string;
  readonly terms: string | null;
  readonly language?: Language | undefined;
  readonly theme?: Theme | undefined;
  /** The registration to consume. */
  readonly tokenHash?: string;
}

function missing(param: string): RequestError {
  return new RequestError("invalid", `${param} is missing`, { details: [{ param, code: "missing" }] });
}

function linkIsOver(): RequestError {
  return new RequestError("not_found", "this link does not work any more: register again");
}
