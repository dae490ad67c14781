/** Usage records for tests. Each number makes one record, and the record contains its number. */
import { millicredits } from "@weiche/shared/credits.ts";
import { asId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

export function usageRecord(number: number, more: Partial<UsageRecord> = {}): UsageRecord {
  return {
    requestId: asId(`01900000-0000-7000-8000-${String(number).padStart(12, "0")}`),
    attempt: 1,
    accountId: asId("account-1"),
    userId: asId("user-1"),
    keyId: asId("key-1"),
    factor: millicredits(1_500n),
    tokensMax: 32_768,
    grant: "q83vEjRWeJCrze8SNFZ4kA",
    model: asId("small-24b"),
    promptTokens: 100,
    completionTokens: number,
    source: "engine",
    outcome: "finished",
    durationMs: 1_234,
    ...more,
  };
}

export function numberOf(record: UsageRecord): number {
  return Number(record.requestId.slice(-12));
}
