/** How people sign in: sessions, passwords, second factor, invitations. */
import type { Origin } from "../rights/accounts-context.ts";
import type { IdentityContext } from "../sign-in/identity-context.ts";
import { createLogin } from "../sign-in/login.ts";
import { createPasswords } from "../sign-in/passwords.ts";
import { prove, type Claim, type ClaimedFrom } from "../sign-in/proof.ts";
import { createSecondFactor } from "../sign-in/second-factor.ts";
import { createSessions } from "../sign-in/sessions.ts";
import { createInvitations } from "./invitations.ts";
import { createProfile } from "./profile.ts";
import { createRegistration } from "./registration.ts";

export interface Identity extends ReturnType<typeof partsOf> {
  /** The same functions with another actor. */
  as(origin: Origin): Identity;
}

export function createIdentity(context: IdentityContext): Identity {
  return { ...partsOf(context), as: (origin) => createIdentity({ ...context, origin }) };
}

function partsOf(context: IdentityContext) {
  const { database, clock } = context;
  return {
    sessions: createSessions(database, clock),
    login: createLogin(context),
    passwords: createPasswords(context),
    secondFactor: createSecondFactor(context),
    invitations: createInvitations(context),
    profile: createProfile(database, context.mail !== undefined),
    /** What the sign-in page offers. */
    offers: {
      registration: context.registration === "open",
      resetByMail: context.mail !== undefined,
      terms: context.terms ?? null,
    },
    /** Authenticates a signed-in person once more. */
    prove: (claim: Claim, from: ClaimedFrom) => prove(context, claim, from),
    registration: createRegistration(context),
  };
}
