/** Dependencies of all functions that read or change accounts. */
import type { Clock } from "@weiche/shared/time/clock.ts";
import type { InvoiceSettings } from "../config/invoice-settings.ts";
import type { Database } from "../db/database.ts";
import type { AuditEvents } from "./audit-entry.ts";

export interface ActingContext {
  readonly database: Database;
  readonly clock: Clock;
  /** The actor, whose rights are checked and who is named in the audit log. If undefined, the operator acts. */
  readonly origin?: Origin;
  /** Receives committed audit entries, for the router's log. */
  readonly audits?: AuditEvents;
}

export interface AccountsContext extends ActingContext {
  /** Base URL of one-time links. */
  readonly portalUrl: string;
  /** If undefined, no invoices are issued. */
  readonly invoices?: InvoiceSettings | undefined;
}

export interface Origin {
  /** A user's id, or `operator`. */
  readonly actor: string;
  /** A network address, or `admin.sock`. */
  readonly source: string;
}

/** The actor for everyone who can open the admin socket. */
export const operator: Origin = { actor: "operator", source: "admin.sock" };
