/**
 * Encodes a usage record for the disk: a JSON array that begins with its version. An agent skips versions that it does
 * not know. Version 2 added the router's grant; a record of version 1 has none, and no router takes it.
 */
import { millicredits } from "@weiche/shared/credits.ts";
import { asId } from "@weiche/shared/ids.ts";
import type { RequestOutcome, UsageRecord, UsageSource } from "@weiche/shared/usage-record.ts";

const version = 2;

export interface StoredRecord {
  readonly record: UsageRecord;
  /** Wall time of this host at which it was appended to the outbox. */
  readonly writtenAtMs: number;
}

export function encodeRecord({ record, writtenAtMs }: StoredRecord): Buffer {
  return Buffer.from(
    JSON.stringify([
      version,
      writtenAtMs,
      record.requestId,
      record.attempt,
      record.accountId,
      record.userId,
      record.keyId,
      record.factor.toString(),
      record.model,
      record.promptTokens,
      record.completionTokens,
      record.reasoningTokens ?? null,
      record.cachedTokens ?? null,
      record.source,
      record.outcome,
      record.durationMs,
      record.firstTokenMs ?? null,
      record.tokensMax,
      record.grant,
    ]),
  );
}

/** Undefined if its version is unknown. */
export function decodeRecord(bytes: Buffer): StoredRecord | undefined {
  const fields = JSON.parse(bytes.toString()) as (string | number | null)[];
  if (fields[0] !== version && fields[0] !== 1) return undefined;
  const text = (index: number) => String(fields[index]);
  const number = (index: number) => Number(fields[index]);
  const optional = (index: number) => (fields[index] === null ? undefined : number(index));
  return {
    writtenAtMs: number(1),
    record: {
      requestId: asId(text(2)),
      attempt: number(3),
      accountId: asId(text(4)),
      userId: asId(text(5)),
      keyId: asId(text(6)),
      factor: millicredits(BigInt(text(7))),
      model: asId(text(8)),
      promptTokens: number(9),
      completionTokens: number(10),
      reasoningTokens: optional(11),
      cachedTokens: optional(12),
      source: text(13) as UsageSource,
      outcome: text(14) as RequestOutcome,
      durationMs: number(15),
      firstTokenMs: optional(16),
      ...(fields[0] === 1 ? { tokensMax: 0, grant: "" } : { tokensMax: number(17), grant: text(18) }),
    },
  };
}
