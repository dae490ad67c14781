import type { UsageRecord } from "@weiche/shared/usage-record.ts";

/** A live link to a router, as the usage delivery sees it. Any router may commit any batch. */
export interface UsageChannel {
  readonly routerId: string;
  /** Its router is stopping: it gets batches only if there is no other one. */
  readonly isLeaving?: boolean;
  /** Sends a batch once. A router that cannot commit it does not answer: without an acknowledgement, send it again. */
  send(batchId: bigint, records: readonly UsageRecord[]): void;
}
