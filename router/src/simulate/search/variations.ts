/** Runs the found fleet again with changed rules or changed assumptions. */
import { nearest } from "@weiche/shared/files/config-file.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { Value } from "typebox/value";
import type { Plan } from "../plan/plan.ts";
import type { PlannedLoad } from "../plan/planned-load.ts";
import { rulesSchema, type RawModel, type RawRules } from "../plan/plan-schema.ts";
import type { SizedGroup } from "../plan/fleet.ts";
import { trialOptions, type Step } from "./capacity.ts";
import { tryFleet, type Trial } from "./trial.ts";

interface Variation {
  readonly name: string;
  readonly plan: Plan;
}

export interface Varied {
  readonly name: string;
  readonly trial: Trial;
}

/**
 * Reads rules such as `drainOpenSeconds=5,fairness=false`. Several values of a rule, such as
 * `minResidencySeconds=0,1,2,5,10`, are one variation each. Throws `StartError` with what to correct.
 */
export function policiesOf(text: string, plan: Plan): readonly Variation[] {
  const rules: [name: string, values: string[]][] = [];
  for (const part of text.split(",").map((each) => each.trim())) {
    const [name = "", value] = part.split("=").map((each) => each.trim());
    if (value === undefined && rules.length > 0) rules.at(-1)![1].push(name);
    else rules.push([name, [value ?? ""]]);
  }
  const names = rules.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new StartError(`the policy "${text}" names ${twice} twice`);
  const all = rules.reduce<readonly (readonly string[])[]>(
    (before, [name, values]) => before.flatMap((parts) => values.map((value) => [...parts, `${name}=${value}`])),
    [[]],
  );
  return all.map((parts) => policyOf(text, parts, plan));
}

function policyOf(text: string, parts: readonly string[], plan: Plan): Variation {
  const rules: Record<string, unknown> = { ...plan.rules };
  const known = Object.keys(plan.rules);
  for (const part of parts) {
    const [name, value] = part.split("=") as [string, string];
    if (!known.includes(name)) {
      const near = nearest(name, known);
      const hint = near === undefined ? `known are ${known.join(", ")}` : `did you mean "${near}"?`;
      throw new StartError(`the policy "${text}" names "${name}"; ${hint}`);
    }
    rules[name] =
      value === "true" || value === "false" ? value === "true" : Number.isNaN(Number(value)) ? value : Number(value);
    if (value === "" || !Value.Check(rulesSchema, rules))
      throw new StartError(`the policy "${text}" has no valid value for ${name}: "${value}"`);
  }
  return { name: parts.join(","), plan: { ...plan, rules: rules as RawRules } };
}

/** The factor by which an assumption is changed, to show its influence. */
const factor = 1.25;

/** One variation for each number that describes engines, a quarter larger for every model that has it. */
export function assumptionsOf(plan: Plan): readonly Variation[] {
  const numbers: readonly (readonly [name: string, change: (model: RawModel) => RawModel])[] = [
    ["startSeconds", (model) => ({ ...model, startSeconds: model.startSeconds * factor })],
    ["stopSeconds", (model) => ({ ...model, stopSeconds: model.stopSeconds * factor })],
    ["wakeSeconds", (model) => (model.wakeSeconds ? { ...model, wakeSeconds: model.wakeSeconds * factor } : model)],
    ["places", (model) => ({ ...model, places: Math.round(model.places * factor) })],
    [
      "prefillTokensPerSecond",
      (model) => ({ ...model, prefillTokensPerSecond: model.prefillTokensPerSecond * factor }),
    ],
    ...(["baseMs", "perRunningMs", "perThousandTokensMs"] as const).map(
      (key) =>
        [
          `step.${key}`,
          (model: RawModel) => ({ ...model, step: { ...model.step, [key]: model.step[key] * factor } }),
        ] as const,
    ),
  ];
  return numbers.map(([name, change]) => {
    const models = Object.fromEntries(Object.entries(plan.models).map(([model, raw]) => [model, change(raw)]));
    return { name: `${name} × ${factor}`, plan: { ...plan, models } };
  });
}

/** Returns the runs that were not stopped. */
export async function vary(
  variations: readonly Variation[],
  load: PlannedLoad,
  groups: readonly SizedGroup[],
  onStep: (step: Step) => Promise<boolean>,
): Promise<readonly Varied[]> {
  const varied: Varied[] = [];
  for (const { name, plan } of variations) {
    const goOn = (share: number) => onStep({ groups, share });
    const trial = await tryFleet({ ...trialOptions(plan, load, groups), isWhole: true }, { goOn });
    if (trial.doneShare < 1) break;
    varied.push({ name, trial });
  }
  return varied;
}
