/** Reads a plan and lists what it leaves to assumptions. */
import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import { checkYaml, formatMistakes, nearest, whatFails, type Finding } from "@weiche/shared/files/config-file.ts";
import { readForStart, StartError } from "@weiche/shared/files/start-error.ts";
import { seemsTrace } from "../loads/trace-formats.ts";
import type { NodeFailure } from "./node-failure.ts";
import { contradictingGoals, parseGoal, type Goal } from "./goals.ts";
import { readProfile, takenFrom, takesNoTime, withValues, type Profiled } from "./profile.ts";
import { planSchema, type RawModel, type RawPlan } from "./plan-schema.ts";

export interface Plan extends Omit<RawPlan, "models"> {
  readonly models: Readonly<Record<string, RawModel>>;
  readonly fleet: NonNullable<RawPlan["fleet"]>;
  /** Nodes that fail during the load. */
  readonly failures: readonly NodeFailure[];
  readonly parsedGoals: readonly Goal[];
  /** The values that the plan does not give, as paths with `.` between keys. */
  readonly assumed: readonly Assumed[];
  /** The profiles of models, with the values that the plan takes from them. */
  readonly profiles: readonly Profiled[];
  /** The folder to which paths of the plan are relative. */
  readonly folder: string;
}

interface Assumed {
  readonly path: string;
  /** Models for which it is assumed. Empty for a value of the whole plan. */
  readonly models: readonly string[];
  readonly value: unknown;
}

/** Throws `StartError` with every mistake of the file and its line. `goals`: those of the command line. */
export function readPlan(file: string, goals: readonly string[]): Plan {
  const text = readForStart(file).toString();
  const instead = seemsTrace(text.slice(0, text.indexOf("\n")).trimEnd())
    ? "it is a load. Write a plan that names it, with `load: { trace: FILE }`"
    : text.includes("\0")
      ? "it is not text, but a plan is YAML"
      : undefined;
  if (instead !== undefined) throw new StartError(`${file} is not a plan: ${instead}`);
  return planOf(text, file, goals);
}

export function planOf(text: string, file: string, goals: readonly string[] = []): Plan {
  const folder = dirname(resolve(file));
  const { value: given, mistakes } = checkYaml(text, planSchema, contradictions);
  if (!given) throw new StartError(formatMistakes(file, mistakes).join("; "));
  const { value, written, profiles } = withProfiles(given, parse(text) as WrittenPlan, folder);
  const models = value.models.map(({ model }) => model);
  const parsedGoals = [...value.goals, ...goals].map((goal) => parseGoal(goal, models));
  const contradicting = contradictingGoals(parsedGoals);
  if (contradicting.length > 0) throw new StartError(contradicting.map(({ message }) => message).join("; "));
  return {
    ...value,
    models: Object.fromEntries(value.models.map((each) => [each.model, each])),
    fleet: value.fleet ?? [{ models }],
    parsedGoals,
    ...{ failures: [], assumed: assumedIn(value, written), profiles, folder },
  };
}

interface WrittenPlan {
  readonly models: readonly Partial<RawModel>[];
}

/** Takes values from profiles where the plan gives none. */
function withProfiles(given: RawPlan, plan: WrittenPlan, folder: string) {
  const profiles: Profiled[] = [];
  const written = [...plan.models];
  const models = [...given.models];
  for (const [index, model] of given.models.entries()) {
    const { profile } = model;
    if (profile === undefined) continue;
    const profiled = readProfile(folder, { ...model, profile });
    const taken = takenFrom(profiled.values, plan.models[index]!);
    profiles.push({ ...profiled, model: model.model, values: taken });
    written[index] = withValues(plan.models[index]!, taken);
    models[index] = withValues(model, taken);
  }
  return { value: { ...given, models }, written: { ...plan, models: written }, profiles };
}

function* contradictions(plan: RawPlan): Iterable<Finding> {
  const models = plan.models.map(({ model }) => model);
  for (const [index, model] of models.entries())
    if (models.indexOf(model) < index) yield [["models", index], `the model "${model}" is written twice`];
  const withDemand = plan.models.findIndex(({ demand, clients }) => demand || clients);
  if (withDemand < 0 && !plan.load) yield [["models"], "no model has a demand or clients, and the plan has no load"];
  for (const [index, { demand, clients }] of plan.models.entries())
    if (demand && clients) yield [["models", index, "clients"], "the model has a demand and clients: keep one of both"];
  if (withDemand >= 0 && plan.load)
    yield [["models", withDemand], "the plan has a load, so demand and clients have no effect: remove one of both"];
  const only = plan.load?.model;
  if (only !== undefined && !models.includes(only)) yield [["load", "model"], noModel(only, models)];
  for (const [index, { model, activeGiB = 0 }] of plan.models.entries())
    if (activeGiB > (plan.slotGiB ?? Infinity))
      yield [["models", index, "activeGiB"], `"${model}" does not fit into a slot of ${plan.slotGiB} GiB`];
  for (const [index, { model, step }] of plan.models.entries())
    if (takesNoTime(step)) yield [["models", index, "step"], `a step of "${model}" takes no time: give its baseMs`];
  yield* mistakesOfGoals(plan.goals, models);
  const fleet = plan.fleet ?? [];
  for (const [index, group] of fleet.entries())
    for (const [at, model] of group.models.entries()) {
      const path = ["fleet", index, "models", at];
      if (!models.includes(model)) yield [path, noModel(model, models)];
      if (group.models.indexOf(model) < at) yield [path, `"${model}" is written twice in this group`];
      const others = fleet.filter((other) => other !== group && other.models.includes(model));
      if (others.length > 0 && [group, ...others].some(({ slots }) => slots === undefined))
        yield [path, `"${model}" is in several groups, so each of them needs a number of slots`];
    }
  for (const [index, model] of models.entries())
    if (plan.fleet && !fleet.some((group) => group.models.includes(model)))
      yield [["models", index], `no group of the fleet serves "${model}"`];
}

function noModel(model: string, models: readonly string[]): string {
  const near = nearest(model, models);
  return `"${model}" is no model of the plan${near === undefined ? "" : `. Did you mean "${near}"?`}`;
}

function mistakesOfGoals(goals: readonly string[], models: readonly string[]): readonly Finding[] {
  const wrong = goals.flatMap((goal, index) => whatFails(["goals", index], () => parseGoal(goal, models)));
  if (wrong.length > 0) return wrong;
  const parsed = goals.map((goal) => parseGoal(goal, models));
  return contradictingGoals(parsed).map(({ index, message }): Finding => [["goals", index], message]);
}

/** Lists the defaults that the written plan does not have. Leaves out goals, runs and hours, because they are choices. */
function assumedIn(plan: RawPlan, written: WrittenPlan): readonly Assumed[] {
  const choices = new Set(["goals", "seeds", "seed", "hours", "models", "fleet", "load"]);
  const own = missing(plan, written, []).filter(([path]) => !choices.has(path[0]!));
  const all = own.map(([path, value]): Assumed => ({ path: path.join("."), models: [], value }));
  const byKey = new Map<string, { path: string; models: string[]; value: unknown }>();
  for (const [index, given] of plan.models.entries()) {
    for (const [path, value] of missing(given, written.models[index], [])) {
      const key = `${path.join(".")} ${JSON.stringify(value)}`;
      const known = byKey.get(key);
      if (known) known.models.push(given.model);
      else byKey.set(key, { path: path.join("."), models: [given.model], value });
    }
  }
  return [...byKey.values(), ...all];
}

/** Returns the leaves of `value` that `written` does not have. */
function missing(
  value: unknown,
  written: unknown,
  path: readonly string[],
): [path: readonly string[], value: unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return written === undefined ? [[path, value]] : [];
  const parts = (written ?? {}) as Record<string, unknown>;
  return Object.entries(value).flatMap(([key, inner]) =>
    path.length === 0 && key === "models" ? [] : missing(inner, parts[key], [...path, key]),
  );
}
