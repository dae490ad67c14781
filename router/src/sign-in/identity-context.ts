/** Dependencies of all functions that authenticate people. */
import type { AccountsContext } from "../rights/accounts-context.ts";
import type { Mail } from "../mail/mail.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import type { PasswordHashing } from "./password-hashing.ts";

export interface IdentityContext extends AccountsContext {
  readonly hashing: PasswordHashing;
  readonly throttle: LoginThrottle;
  readonly events: IdentityEvents;
  /** If undefined, no mail is sent, and links are shown to the person who makes them. */
  readonly mail?: Pick<Mail, "send">;
  /** `open`: people may open accounts themselves. */
  readonly registration: "open" | "closed";
  /** The address of the terms that people accept when they register. If undefined, there are none. */
  readonly terms?: string | undefined;
}

export type LoginOutcome =
  | "signed-in"
  | "wrong"
  | "code-required"
  | "code-wrong"
  | "blocked"
  | "account-blocked"
  | "throttled"
  | "overloaded";

export interface IdentityEvents {
  /** Reports how an authentication ended. */
  loginFinished(outcome: LoginOutcome): void;
}

/** Returns the context with the person themselves as the actor. */
export function asThemselves<C extends AccountsContext>(context: C, userId: string, source: string): C {
  return { ...context, origin: { actor: userId, source } };
}
