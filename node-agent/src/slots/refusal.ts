/** Errors for requests that a slot does not admit. */
import { ApiError } from "@weiche/shared/errors.ts";
import type { RefusalKind, SlotEffect } from "./slot-state.ts";

const messages: Readonly<Record<RefusalKind, string>> = {
  model_switching: "The model's slot is switching to another model.",
  model_unavailable: "The model cannot be started at the moment.",
  overloaded: "Too many requests for this model.",
  maintenance: "The node is in maintenance.",
};

export function refusalError({ refusal, retryAfterMs, turnMs }: Extract<SlotEffect, { kind: "refuse" }>): ApiError {
  const turn = turnMs === undefined ? "" : ` The model's next turn is expected in ${Math.ceil(turnMs / 1000)} s.`;
  return new ApiError(refusal, `${messages[refusal]}${turn}`, { retryAfterSeconds: retryAfterMs / 1000 });
}
