/** A request of the simulation, with the facts that the rules record about it. */
import type { ApiErrorKind } from "@weiche/shared/errors.ts";
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";

/** A request as its client sees it. */
export interface SimRequest {
  /** Grows with every request. */
  readonly order: number;
  readonly model: ModelId;
  readonly account: AccountId;
  /** Number of simultaneous answers. Each takes a place. */
  readonly answers: number;
  readonly sinceMs: number;
  /** Time left for the whole answer. Unbounded if undefined. */
  readonly leftMs?: number;
  answer?: { readonly kind: "admitted" | "left" | ApiErrorKind; readonly atMs: number };
  /** The origin of its engine while it runs. The origin changes with each start. */
  origin?: string;
  /** Whether the drain of its model was closed when it came. */
  tooLate?: boolean;
  /** Set once the request's model comes after `behind`: the start of this wait, and the switching time before it. */
  bound?: { readonly behind: ModelId; readonly sinceMs: number; readonly switchingMsBefore: number };
  /** Set for the same request: how long earlier requests have waited since. */
  aheadMs?: number;
}
