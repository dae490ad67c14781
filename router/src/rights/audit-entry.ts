/** An entry of the audit log, and its line in the router's log. */
import type { Selectable } from "kysely";
import type { Role, Schema } from "../db/schema.ts";

export type AuditEntry = Omit<Selectable<Schema["auditLog"]>, "hash">;

/** The message of these log lines. `weiche restore --audit-log` finds them by it. */
export const auditMessage = "audit";

/** Returns the fields of the log line. Of the details, it has only ids and values of closed sets. */
export function loggedDeed({ accountId, number, at, actor, action, object, result, details }: AuditEntry) {
  const { replaces, role } = JSON.parse(details) as { readonly replaces?: string; readonly role?: Role };
  return { accountId, number: Number(number), at: at.toString(), actor, action, object, result, replaces, role };
}

export interface AuditEvents {
  /** Call it after an entry is committed. */
  audited(entry: AuditEntry): void;
}
