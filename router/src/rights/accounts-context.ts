/** What the parts of the business are made from. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Database } from "../db/database.ts";

export interface ActingContext {
  readonly database: Database;
  readonly clock: Clock;
  /** Who acts, for the audit log. Absent: the operator. */
  readonly origin?: Origin;
}

export interface AccountsContext extends ActingContext {
  /** Where invitations lead. */
  readonly portalUrl: string;
}

export interface Origin {
  /** A user's id, or `operator`. */
  readonly actor: string;
  /** A network address, or the operators' socket. */
  readonly source: string;
}

/** Whoever may open the admin socket. */
export const operator: Origin = { actor: "operator", source: "admin.sock" };
