/** Interface between the usage delivery and the links to routers. Any router may commit any batch. */
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

/** A live link, as the delivery sees it. */
export interface UsageChannel {
  readonly routerId: string;
  /** Its router is stopping: it gets batches only if there is no other one. */
  readonly isLeaving?: boolean;
  /**
   * Sends a batch, once per call. The batch is lost with the link (see `linkDown`). A router that cannot commit it does
   * not answer, so a batch without an acknowledgement must be sent again after a while.
   */
  send(batchId: bigint, records: readonly UsageRecord[]): void;
}

/** Events of a link for the delivery. */
export interface UsageLinks {
  /** The router has welcomed this agent: batches may be sent to it from now on. */
  linkUp(channel: UsageChannel): void;
  /** The router has committed the batch, which was sent on its present link. */
  acknowledged(routerId: string, batchId: bigint): void;
  /**
   * Batches that were not acknowledged on this link never will be: send them again, on any link. One call per `linkUp`.
   */
  linkDown(routerId: string): void;
}
