/** Reads what a user asks with `--what-if`, and applies it to the plan. Changes of the load apply to the load. */
import { StartError } from "@weiche/shared/files/start-error.ts";
import { parseWhatIf, type WhatIf } from "../loads/changes.ts";
import { isAboutNode, parseNodeFailure } from "./node-failure.ts";
import type { Plan } from "./plan.ts";

/** Throws `StartError` with what to correct. */
export function askWhatIf(
  given: Plan,
  texts: readonly string[],
): { readonly plan: Plan; readonly changes: readonly WhatIf[] } {
  const changes: WhatIf[] = [];
  let plan = given;
  for (const text of texts.filter((one) => !isAboutNode(one))) {
    const change = parseWhatIf(text, Object.keys(plan.models));
    changes.push(change);
    if (change.kind === "added") plan = withModel(plan, change);
  }
  const failures = texts.filter(isAboutNode).map((text) => parseNodeFailure(text, plan));
  const twice = failures.find(({ node }, index) => failures.findIndex((other) => other.node === node) < index);
  if (twice) throw new StartError(`"${twice.text}": the node fails twice. Simulate one failure of a node at a time`);
  return { plan: { ...plan, failures }, changes };
}

/** The model shares the slots of the one that it is like. Its requests are copies of that model's requests. */
function withModel(plan: Plan, { model, like }: { readonly model: string; readonly like: string }): Plan {
  const fleet = plan.fleet.map((group) =>
    group.models.includes(like) ? { ...group, models: [...group.models, model] } : group,
  );
  return {
    ...plan,
    models: { ...plan.models, [model]: { ...plan.models[like]!, demand: undefined, clients: undefined, model } },
    fleet,
  };
}
