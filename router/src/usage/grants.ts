/**
 * Grants limit what a node may bill. With each attempt the router sends a signature over the payer, the model, the factor,
 * the most tokens, and the node. The usage record brings it back, to any router of the database. So a node can neither
 * invent a request nor change its payer, and no router has to remember what it sent. Up to `tokensMax` the node is trusted.
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import type { Pool } from "pg";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

/** The signed fields of an attempt; the node that it is sent to is signed too. */
export type GrantedAttempt = Pick<
  UsageRecord,
  "requestId" | "attempt" | "accountId" | "userId" | "keyId" | "model" | "factor" | "tokensMax"
>;

/** `wrong-grant`: the signature is for another attempt or node, or not ours. */
export type GrantFault = "no-grant" | "wrong-grant" | "too-many-tokens";

export type Grants = ReturnType<typeof createGrants>;

/** A guess is right once in 2^128. */
const grantBytes = 16;

/** Reads the secret that all routers of the database share. */
export async function readGrants(pool: Pool): Promise<Grants> {
  const { rows } = await pool.query<{ secret: Buffer }>("select secret from grant_secret");
  return createGrants(rows[0]!.secret);
}

export function createGrants(secret: Buffer) {
  const key = createSecretKey(secret);
  return {
    /** Returns base64url. `node`: as authenticated on the connection that the attempt is sent on. */
    sign: (node: NodeId, attempt: GrantedAttempt): string => signatureOf(key, node, attempt).toString("base64url"),
    /** Why the grant does not cover a record; undefined: it does. `node`: as authenticated on the link of the record. */
    faultOf(node: NodeId, record: UsageRecord): GrantFault | undefined {
      if (record.grant === "") return "no-grant";
      const grant = Buffer.from(record.grant, "base64url");
      if (grant.length !== grantBytes || !timingSafeEqual(grant, signatureOf(key, node, record))) return "wrong-grant";
      return record.promptTokens + record.completionTokens > record.tokensMax ? "too-many-tokens" : undefined;
    },
  };
}

function signatureOf(key: KeyObject, node: NodeId, attempt: GrantedAttempt): Buffer {
  const { requestId, attempt: number, accountId, userId, keyId, model, factor, tokensMax } = attempt;
  // JSON, so that no text can extend over the boundary of two fields.
  const signed = [node, requestId, number, accountId, userId, keyId, model, factor.toString(), tokensMax];
  return createHmac("sha256", key).update(JSON.stringify(signed)).digest().subarray(0, grantBytes);
}
