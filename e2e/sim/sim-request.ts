/** A request of the simulation, with the notes of its judges. */
import type { ApiErrorKind } from "@weiche/shared/errors.ts";
import type { AccountId, ModelId } from "@weiche/shared/ids.ts";

/** A request as its client sees it. */
export interface SimRequest {
  /** Grows with every request. */
  readonly order: number;
  readonly model: ModelId;
  readonly account: AccountId;
  /** Each takes a place, and all of them at the same time. */
  readonly answers: number;
  readonly sinceMs: number;
  /** Time left for the whole answer. Default: not bounded. */
  readonly leftMs?: number;
  answer?: { readonly kind: "admitted" | "left" | ApiErrorKind; readonly atMs: number };
  /** While it runs: the origin of its engine, which changes with each start. */
  origin?: string;
  /** Whether the drain of its model was closed when it came. */
  tooLate?: boolean;
  /** Set once the request is the next one for another model than `behind`: since when, and the time spent on switches before. */
  bound?: { readonly behind: ModelId; readonly sinceMs: number; readonly switchingMsBefore: number };
  /** Set for the same request: how long earlier requests have waited since. */
  aheadMs?: number;
}
