/**
 * What a node may bill is decided before it answers: with each attempt the router sends a signature over who pays, for
 * what, at which factor, how much at most, and which node it is. The node's usage record brings it back, to any router of
 * the database. So a node can neither invent a request nor change what one is billed to, and no router has to remember
 * what it sent. Within `tokensMax` a node is believed.
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import type { Pool } from "pg";
import type { NodeId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

/** What is signed of an attempt, together with the node that it is sent to. */
export type GrantedAttempt = Pick<
  UsageRecord,
  "requestId" | "attempt" | "accountId" | "userId" | "keyId" | "model" | "factor" | "tokensMax"
>;

/** `wrong-grant`: it was made for another attempt, for another node, or by nobody of ours. */
export type GrantRefusal = "no-grant" | "wrong-grant" | "too-many-tokens";

export interface Grants {
  /** In base64url. `node`: as it is authenticated on the connection that the attempt is sent on. */
  sign(node: NodeId, attempt: GrantedAttempt): string;
  /** Why a record is not covered by its grant. `node`: as it is authenticated on the link that the record came by. */
  refusalOf(node: NodeId, record: UsageRecord): GrantRefusal | undefined;
}

/** A guess is right once in 2^128. */
const grantBytes = 16;

/** The routers of one database have one secret, which its schema made. */
export async function readGrants(pool: Pool): Promise<Grants> {
  const { rows } = await pool.query<{ secret: Buffer }>("select secret from grant_secret");
  return createGrants(rows[0]!.secret);
}

export function createGrants(secret: Buffer): Grants {
  const key = createSecretKey(secret);
  return {
    sign: (node, attempt) => signatureOf(key, node, attempt).toString("base64url"),
    refusalOf(node, record) {
      if (record.grant === "") return "no-grant";
      const grant = Buffer.from(record.grant, "base64url");
      if (grant.length !== grantBytes || !timingSafeEqual(grant, signatureOf(key, node, record))) return "wrong-grant";
      return record.promptTokens + record.completionTokens > record.tokensMax ? "too-many-tokens" : undefined;
    },
  };
}

function signatureOf(key: KeyObject, node: NodeId, attempt: GrantedAttempt): Buffer {
  const { requestId, attempt: number, accountId, userId, keyId, model, factor, tokensMax } = attempt;
  // As JSON, so that no text can pass for the end of one field and the beginning of the next.
  const signed = [node, requestId, number, accountId, userId, keyId, model, factor.toString(), tokensMax];
  return createHmac("sha256", key).update(JSON.stringify(signed)).digest().subarray(0, grantBytes);
}
