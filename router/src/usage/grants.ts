/**
 * Grants limit what a node may bill. With each attempt the router sends a signature over payer, model, factor, maximum
 * tokens and node. The usage record returns it to any router of the database. So a node can neither invent a request nor
 * change its payer, and no router has to store its attempts. Up to `tokensMax`, the node's count is trusted.
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import type { Pool } from "pg";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

/** The signed fields of an attempt. Its node is signed too. */
type GrantedAttempt = Pick<
  UsageRecord,
  "requestId" | "attempt" | "accountId" | "userId" | "keyId" | "model" | "factor" | "tokensMax"
>;

/** `wrong-grant`: the signature belongs to another attempt, node or database. */
export type GrantFault = "no-grant" | "wrong-grant" | "too-many-tokens";

export type Grants = ReturnType<typeof createGrants>;

/** 128 bits: a node cannot guess a grant. */
const grantBytes = 16;

/** Reads the secret that all routers of the database share. */
export async function readGrants(pool: Pool): Promise<Grants> {
  const { rows } = await pool.query<{ secret: Buffer }>("select secret from grant_secret");
  return createGrants(rows[0]!.secret);
}

export function createGrants(secret: Buffer) {
  const key = createSecretKey(secret);
  return {
    /** Returns the grant in base64url. `node` is authenticated by its data connection. */
    sign: (node: NodeId, attempt: GrantedAttempt): string => signatureOf(key, node, attempt).toString("base64url"),
    /** Returns why the grant does not cover a record; undefined if it does. `node` is authenticated by the record's link. */
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
