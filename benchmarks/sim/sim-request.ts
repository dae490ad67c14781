/** A request of the simulation, and what its judges note of it. */
import type { ApiErrorKind } from "@weiche/shared/errors.ts";
import type { ModelId } from "@weiche/shared/ids.ts";

/** A request as its client sees it. */
export interface SimRequest {
  /** Grows with every request. */
  readonly order: number;
  readonly model: ModelId;
  /** Each takes a place, and all of them at the same time. */
  readonly answers: number;
  readonly sinceMs: number;
  answer?: { readonly kind: "granted" | "left" | ApiErrorKind; readonly atMs: number };
  /** While it runs: the engine's name for this life of it. */
  origin?: string;
  /** Whether it was for a model whose drain was closed when it came. */
  tooLate?: boolean;
  /** If it was the first to want another model: what had been spent on switching when it came. */
  switchingMsBefore?: number;
  /** If so: how long others waited that had come before it. */
  aheadMs?: number;
}
