import type { ModelId } from "@weiche/shared/ids.ts";

/** What an operator wants of a node; kept in the database. Of several the one with the highest generation holds. */
export interface DesiredState {
  readonly generation: bigint;
  readonly maintenance: boolean;
  /** Models to activate when their slot is free for it. */
  readonly prewarmModels: readonly ModelId[];
}
