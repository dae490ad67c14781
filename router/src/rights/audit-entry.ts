/** An entry of the audit log, and what the router's log tells of it. */
import type { Selectable } from "kysely";
import type { Role, Schema } from "../db/schema.ts";

export type AuditEntry = Omit<Selectable<Schema["auditLog"]>, "hash">;

/** Message of the log lines that tell of entries, for `weiche restore --audit-log`. */
export const auditMessage = "audit";

/** The fields that the log line of an entry has: of its details, only values of closed sets and ids. */
export function loggedDeed({ accountId, number, at, actor, action, object, result, details }: AuditEntry) {
  const { replaces, role } = JSON.parse(details) as { readonly replaces?: string; readonly role?: Role };
  return { accountId, number: Number(number), at: at.toString(), actor, action, object, result, replaces, role };
}

export interface AuditEvents {
  /** An entry is committed. */
  audited(entry: AuditEntry): void;
}
