/** What the parts of signing in are made from. */
import type { AccountsContext } from "../rights/accounts-context.ts";
import type { Mail } from "../mail/mail.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import type { PasswordHashing } from "./password-hashing.ts";

export interface IdentityContext extends AccountsContext {
  readonly hashing: PasswordHashing;
  readonly throttle: LoginThrottle;
  readonly events: IdentityEvents;
  /** Absent: links are shown to whoever makes them, and nobody gets one by mail. */
  readonly mail?: Pick<Mail, "send">;
  /** Whether anybody may open an account. */
  readonly registration: "open" | "closed";
}

export type LoginOutcome =
  | "signed-in"
  | "wrong"
  | "code-required"
  | "code-wrong"
  | "blocked"
  | "throttled"
  | "overloaded";

export interface IdentityEvents {
  /** Somebody proved to be who they are, or did not. */
  loginFinished(outcome: LoginOutcome): void;
}

/** The same, done by the person themselves. */
export function asThemselves<C extends AccountsContext>(context: C, userId: string, source: string): C {
  return { ...context, origin: { actor: userId, source } };
}
