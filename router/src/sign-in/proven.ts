/** The result of an authentication, and the check that it is still valid when the change that required it is written. */
import { sql, type Transaction } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import type { Schema } from "../db/schema.ts";

export interface Proven {
  readonly kind: "proven";
  readonly userId: UserId;
  /** The stored hash that the password was compared with. */
  readonly stored: string;
  /** The second factor's secret; null if it was off. */
  readonly totpSecret: string | null;
  readonly failedLogins: number;
}

/** Proof that the person who uses a session has authenticated again. */
export interface Evidence {
  readonly proof: Proven;
  readonly sessionId: string;
}

export class ProofIsOver extends Error {}

/**
 * Throws `ProofIsOver` if, since the authentication, the password or the second factor was changed, the session ended or the
 * user was blocked. The rows stay locked, so that none of this happens before the transaction ends.
 */
export async function requireStillProven(
  transaction: Transaction<Schema>,
  { proof: { userId, stored, totpSecret }, sessionId }: Evidence,
): Promise<void> {
  const factor = sql<string | null>`case when c.totp_since is not null then c.totp_secret end`;
  const row = await transaction
    .selectFrom("credentials as c")
    .innerJoin("users as u", "u.id", "c.userId")
    .innerJoin("sessions as s", "s.userId", "u.id")
    .select("u.id")
    .where("u.id", "=", userId)
    .where("u.blocked", "=", false)
    .where("c.password", "=", stored)
    .where(factor, "is not distinct from", totpSecret)
    .where("s.id", "=", sessionId)
    .forUpdate("c")
    .forShare(["u", "s"])
    .executeTakeFirst();
  if (!row) throw new ProofIsOver("the authentication is no longer valid");
}
