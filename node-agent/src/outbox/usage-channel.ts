import type { UsageRecord } from "@weiche/shared/usage-record.ts";

/** A live link to a router, as used for usage delivery. Any router may commit any batch. */
export interface UsageChannel {
  readonly routerId: string;
  /** The router is stopping. It gets batches only if there is no other router. */
  readonly isLeaving?: boolean;
  /** Sends a batch once. A router that cannot commit it does not answer. Without an acknowledgement, send it again. */
  send(batchId: bigint, records: readonly UsageRecord[]): void;
}
