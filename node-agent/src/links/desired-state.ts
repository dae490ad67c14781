import type { ModelId } from "@weiche/shared/ids.ts";

/** What an operator wants of this node, as a router tells it. The highest generation holds. */
export interface DesiredState {
  readonly generation: bigint;
  readonly maintenance: boolean;
  /** Models to activate when their slot is free for it. */
  readonly prewarmModels: readonly ModelId[];
}
