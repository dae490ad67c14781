/** Goals such as `wait.p99<=30s`, `small-24b firstToken.p95<=5s` or `refused<=1%`. */
import { nearest } from "@weiche/shared/files/config-file.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { ModelTally } from "../engine/tally.ts";

export interface Goal {
  /** The text as the user wrote it. */
  readonly text: string;
  /** The model of the goal. Undefined if each model must meet it. */
  readonly model?: string;
  /** The compared value, such as `wait.p99`. */
  readonly name: string;
  readonly of: (tally: ModelTally) => number;
  /** The bound, in seconds or as a share. */
  readonly most: number;
  readonly isShare: boolean;
}

const form = /^(?:(\S+) )?([a-zA-Z]+)(?:\.p(\d+(?:\.\d+)?))? *<= *(\d+(?:\.\d+)?) *(ms|s|m|%)$/;
const unitSeconds: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60 };
const times = ["wait", "firstToken"] as const;
const shares: Readonly<Record<string, (tally: ModelTally) => number>> = {
  refused: ({ refused, attempts }) => refused / Math.max(1, attempts),
  limited: ({ limited, attempts }) => limited / Math.max(1, attempts),
  gaveUp: ({ gaveUp, requests }) => gaveUp / Math.max(1, requests),
};
const example = "write it like wait.p99<=30s or refused<=1%";

/** Throws `StartError` with what to correct. */
export function parseGoal(text: string, models: readonly string[]): Goal {
  const [, model, name, percent, bound, unit] = form.exec(text.trim()) ?? [];
  if (name === undefined || bound === undefined) throw new StartError(`cannot read the goal "${text}": ${example}`);
  if (model !== undefined && !models.includes(model))
    throw new StartError(
      `the goal "${text}" names the model "${model}", which the plan does not have${hint(model, models)}`,
    );
  const share = shares[name];
  const time = times.find((each) => each === name);
  if (!share && !time) {
    const known = [...times, ...Object.keys(shares)];
    throw new StartError(`the goal "${text}" names "${name}"${hint(name, known) || `; known are ${known.join(", ")}`}`);
  }
  if (share) {
    if (unit !== "%" || percent !== undefined || Number(bound) >= 100)
      throw new StartError(`the goal "${text}" compares a share: ${name}<=1% is an example`);
    return { text, model, name, of: share, most: Number(bound) / 100, isShare: true };
  }
  if (unit === "%" || percent === undefined || Number(percent) >= 100)
    throw new StartError(`the goal "${text}" compares a time: ${name}.p99<=30s is an example`);
  const quantile = Number(percent) / 100;
  const most = Number(bound) * unitSeconds[unit!]!;
  const of = (tally: ModelTally) => tally[time!].quantileMs(quantile) / 1_000;
  return { text, model, name: `${name}.p${percent}`, of, most, isShare: false };
}

/**
 * Finds goals that set a second bound for the same value, and goals for one model that are weaker than those for all. A
 * stricter goal for one model may stand beside that for all. `index`: the place of the goal in the list.
 */
export function contradictingGoals(
  goals: readonly Goal[],
): readonly { readonly index: number; readonly message: string }[] {
  return goals.flatMap((goal, index) =>
    goals.flatMap((other, at) => {
      if (other.name !== goal.name) return [];
      if (other.model === goal.model && at < index)
        return {
          index,
          message: `the goals "${other.text}" and "${goal.text}" give two bounds to one value: keep one of them`,
        };
      if (other.model !== undefined || goal.model === undefined || other.most > goal.most) return [];
      const message = `the goal "${goal.text}" has no effect beside "${other.text}", which is for each model: remove one, or name a model in both`;
      return { index, message };
    }),
  );
}

function hint(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? "" : `. Did you mean "${near}"?`;
}
