/** How people sign in: sessions, passwords, second factor, invitations. Everything goes through `createIdentity`. */
import type { Origin } from "../rights/accounts-context.ts";
import { createInvitations, type Invitations } from "./invitations.ts";
import type { IdentityContext } from "../sign-in/identity-context.ts";
import { createLogin, type Login } from "../sign-in/login.ts";
import { createPasswords, type Passwords } from "../sign-in/passwords.ts";
import { createProfile, type Profile } from "./profile.ts";
import { prove, type Claim, type ClaimedFrom, type Unproven } from "../sign-in/proof.ts";
import type { Proven } from "../sign-in/proven.ts";
import { register, type Registered, type RegistrationWish } from "./registration.ts";
import { createSecondFactor, type SecondFactor } from "../sign-in/second-factor.ts";
import type { Sessions } from "../sign-in/sessions.ts";
import { createSessions, type SignedInFrom } from "../sign-in/sessions.ts";

export interface Identity {
  readonly sessions: Sessions;
  readonly login: Login;
  readonly passwords: Passwords;
  readonly secondFactor: SecondFactor;
  readonly invitations: Invitations;
  readonly profile: Profile;
  /** What the sign-in page may offer. */
  readonly offers: { readonly registration: boolean; readonly resetByMail: boolean };
  /** Authenticates a signed-in person once more. */
  prove(claim: Claim, from: ClaimedFrom): Promise<Proven | Unproven>;
  register(wish: RegistrationWish, from: SignedInFrom): Promise<Registered>;
  /** The same functions with another actor. */
  as(origin: Origin): Identity;
}

export function createIdentity(context: IdentityContext): Identity {
  const { database, clock } = context;
  return {
    sessions: createSessions(database, clock),
    login: createLogin(context),
    passwords: createPasswords(context),
    secondFactor: createSecondFactor(context),
    invitations: createInvitations(context),
    profile: createProfile(database),
    offers: { registration: context.registration === "open", resetByMail: context.mail !== undefined },
    prove: (claim, from) => prove(context, claim, from),
    register: (wish, from) => register(context, wish, from),
    as: (origin) => createIdentity({ ...context, origin }),
  };
}
