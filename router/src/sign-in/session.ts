/** A signed-in person's session: one row of `sessions`, looked up by its token at every request. */
import type { AccountId, UserId } from "@weiche/shared/ids.ts";
import type { Role, Language, Theme } from "../db/schema.ts";

export interface Session {
  /** The row's id; the token is only in the cookie. */
  readonly id: string;
  readonly user: {
    readonly id: UserId;
    readonly accountId: AccountId;
    readonly email: string;
    readonly role: Role;
    readonly blocked: boolean;
    /** null: the browser's. */
    readonly language: Language | null;
    /** null: the system's. */
    readonly theme: Theme | null;
    /** null: every model. */
    readonly allowedModels: readonly string[] | null;
  };
  /** The session ends then at the latest, and earlier when idle. */
  readonly expiresAtMs: number;
}

/** A session as its owner sees it: a signed-in device. */
export interface SessionView {
  readonly id: string;
  readonly createdAt: string;
  /** Last request, to the minute. */
  readonly seenAt: string;
  readonly expiresAt: string;
  /** The network address that signed in. */
  readonly source: string;
  /** `User-Agent` of the browser. */
  readonly agent: string;
}

export interface Sessions {
  start(
    userId: UserId,
    from: { readonly source: string; readonly agent: string },
  ): Promise<{ token: string; session: Session }>;
  /** undefined: the token has no valid session. Reads the database each time. */
  find(token: string): Promise<Session | undefined>;
  end(id: string): Promise<void>;
  endAll(userId: UserId, except?: string): Promise<void>;
  list(userId: UserId): Promise<readonly SessionView[]>;
}
