/** Where usage records become money: the contract between the node link and the database. */
import type { NodeId } from "@weiche/shared/ids.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

export interface UsageLedger {
  /**
   * Resolves once the records are committed, each at most once by (request id, attempt), with the running totals moved
   * in the same transaction. Rejects if they are not: then nothing is acknowledged and the agent sends them again.
   */
  record(node: NodeId, records: readonly UsageRecord[]): Promise<void>;
}
