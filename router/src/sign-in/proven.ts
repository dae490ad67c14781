/** What somebody has proven, and whether it still holds when the change that it was asked for is written. */
import { sql, type Transaction } from "kysely";
import type { UserId } from "@weiche/shared/ids.ts";
import type { Schema } from "../db/schema.ts";

export interface Proven {
  readonly kind: "proven";
  readonly userId: UserId;
  /** The stored hash that the password was compared with. */
  readonly stored: string;
  /** Of the second factor that was on; null: none was asked for. */
  readonly totpSecret: string | null;
  readonly failedLogins: number;
}

/** Who is signed in has proven to be that person. */
export interface Evidence {
  readonly proof: Proven;
  readonly sessionId: string;
}

export class ProofIsOver extends Error {}

/**
 * Meanwhile a link may have set another password, or somebody have ended the session, blocked the user or changed the
 * second factor: that counts, not what was proven. The rows stay locked, so that nothing comes in between any more.
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
  if (!row) throw new ProofIsOver("the proof is over");
}
