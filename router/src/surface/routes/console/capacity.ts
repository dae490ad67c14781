/** Makes the item of the console's capacity page. */
import { instantText } from "../../../db/database.ts";
import type { CapacityState } from "../../../simulate/own/own-capacity.ts";
import type { ConsoleCapacity } from "../../contract/console.ts";

export function viewCapacity({ answer, problem, share, ...state }: CapacityState): ConsoleCapacity {
  return {
    ...state,
    // Progress in hundredths, so that the item changes a few times a second.
    ...{ share: Math.round(100 * share) / 100, problem: problem ?? null, answer: answer ? viewAnswer(answer) : null },
  };
}

function viewAnswer({
  fromMs,
  toMs,
  endedAtMs,
  ...answer
}: NonNullable<CapacityState["answer"]>): NonNullable<ConsoleCapacity["answer"]> {
  const times = { from: instantText(fromMs), until: instantText(toMs), endedAt: instantText(endedAtMs) };
  return structuredClone({ ...answer, ...times }) as NonNullable<ConsoleCapacity["answer"]>;
}
