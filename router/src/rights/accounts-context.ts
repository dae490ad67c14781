/** Dependencies of everything that reads or changes accounts. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { Database } from "../db/database.ts";
import type { AuditEvents } from "./audit-entry.ts";

export interface ActingContext {
  readonly database: Database;
  readonly clock: Clock;
  /** The actor, whose rights count and whom the audit log names. Absent: the operator. */
  readonly origin?: Origin;
  /** Absent: entries of the audit log are told to nobody. */
  readonly audits?: AuditEvents;
}

export interface AccountsContext extends ActingContext {
  /** Base URL of one-time links. */
  readonly portalUrl: string;
}

export interface Origin {
  /** A user's id, or `operator`. */
  readonly actor: string;
  /** A network address, or the operators' socket. */
  readonly source: string;
}

/** Anyone who can open the admin socket. */
export const operator: Origin = { actor: "operator", source: "admin.sock" };
