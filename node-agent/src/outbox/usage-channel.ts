/** Between the usage delivery and the links to the routers: any router of an agent may commit any batch. */
import type { UsageRecord } from "@weiche/shared/usage-record.ts";

/** A live link, as the delivery sees it. */
export interface UsageChannel {
  readonly routerId: string;
  /** Its router stops: batches go to it only as long as there is no other one. */
  readonly isLeaving?: boolean;
  /**
   * Sends a batch, once per call. It is lost with the link (`linkDown` tells); a router that cannot commit it says
   * nothing, so that a batch without an acknowledgement is to be sent again after a while.
   */
  send(batchId: bigint, records: readonly UsageRecord[]): void;
}

/** What a link tells the delivery. */
export interface UsageLinks {
  /** The router has said welcome: batches may be sent to it from now on. */
  linkUp(channel: UsageChannel): void;
  /** The router has committed the batch, which was sent on its present link. */
  acknowledged(routerId: string, batchId: bigint): void;
  /**
   * Batches that were not acknowledged on this link never will be: send them again, anywhere. Each `linkUp` is followed by
   * one `linkDown`.
   */
  linkDown(routerId: string): void;
}
