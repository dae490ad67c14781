/**
 * Encodes a usage record for the disk: a JSON array that begins with its version. An agent skips versions that it does
 * not know. Version 2 added the router's grant. A record of version 1 has none, and no router accepts it.
 */
import { millicredits } from "@weiche/shared/credits.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

const version = 2;

export interface StoredRecord {
  readonly record: UsageRecord;
  /** The wall time of this host at which the record was appended to the outbox. */
  readonly writtenAtMs: number;
}

/** The fields of a record in their order on disk. Fields of later versions come last. */
const fields = [
  ...(["requestId", "attempt", "accountId", "userId", "keyId", "factor", "model"] as const),
  ...(["promptTokens", "completionTokens", "reasoningTokens", "cachedTokens", "source", "outcome"] as const),
  ...(["durationMs", "firstTokenMs", "tokensMax", "grant", "estimatedTokens"] as const),
] as const satisfies readonly (keyof UsageRecord)[];

export function encodeRecord({ record, writtenAtMs }: StoredRecord): Buffer {
  const stored = { ...record, factor: record.factor.toString() };
  return Buffer.from(JSON.stringify([version, writtenAtMs, ...fields.map((field) => stored[field] ?? null)]));
}

/** Returns undefined if the version is unknown. */
export function decodeRecord(bytes: Buffer): StoredRecord | undefined {
  const [found, writtenAtMs, ...values] = JSON.parse(bytes.toString()) as [number, number, ...unknown[]];
  if (found !== version && found !== 1) return undefined;
  const stored = Object.fromEntries(fields.map((field, index) => [field, values[index] ?? undefined]));
  const record = { ...stored, factor: millicredits(BigInt(stored["factor"] as string)) } as UsageRecord;
  return { writtenAtMs, record: found === 1 ? { ...record, tokensMax: 0, grant: "" } : record };
}
