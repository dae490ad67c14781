/** What a signed-in person's request is made for: one row of `sessions`, found by its token at every request. */
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import type { Role, Language, Theme } from "../db/schema.ts";

export interface Session {
  /** Of the row; the token is only in the cookie. */
  readonly id: string;
  readonly user: {
    readonly id: UserId;
    readonly accountId: AccountId;
    readonly email: string;
    readonly role: Role;
    readonly blocked: boolean;
    /** null: as the browser says. */
    readonly language: Language | null;
    /** null: as the system says. */
    readonly theme: Theme | null;
    /** null: every model. */
    readonly allowedModels: readonly string[] | null;
  };
  /** At the latest; earlier if nothing is asked for a while. */
  readonly expiresAtMs: number;
}

/** A device, as its owner sees it. */
export interface SessionView {
  readonly id: string;
  readonly createdAt: string;
  /** To the minute. */
  readonly seenAt: string;
  readonly expiresAt: string;
  /** The network address that signed in. */
  readonly source: string;
  /** What the browser says of itself. */
  readonly agent: string;
}

export interface Sessions {
  start(
    userId: UserId,
    from: { readonly source: string; readonly agent: string },
  ): Promise<{ token: string; session: Session }>;
  /** undefined: nobody is signed in with this token (any more). Reads the database each time. */
  find(token: string): Promise<Session | undefined>;
  end(id: string): Promise<void>;
  endAll(userId: UserId, except?: string): Promise<void>;
  list(userId: UserId): Promise<readonly SessionView[]>;
}
