/** Reads the profile of an engine, whose values replace assumptions of a plan. */
import { basename, resolve } from "node:path";
import { profileSchema, type EngineProfile } from "@weiche/node-agent/src/profile/profile-file.ts";
import { checkYaml, formatMistakes, type Finding } from "@weiche/shared/files/config-file.ts";
import { readForStart, StartError } from "@weiche/shared/files/start-error.ts";
import type { RawModel } from "./plan-schema.ts";

type Values = Partial<Pick<RawModel, (typeof names)[number]>>;

/** What a profile tells about a model of the plan. */
export interface Profiled {
  readonly model: string;
  /** The name of its file, the engine with its version, and the GPUs. */
  readonly source: string;
  readonly values: Values;
}

const names = ["places", "startSeconds", "stopSeconds", "wakeSeconds", "step", "prefillTokensPerSecond"] as const;

/** Throws `StartError` with each mistake of the file, its line and its field. */
export function readProfile(
  folder: string,
  { model, profile, engineVersion }: RawModel & { readonly profile: string },
) {
  const file = resolve(folder, profile);
  const { value, mistakes } = checkYaml(readForStart(file).toString(), profileSchema, (found) =>
    mismatches(found, model, engineVersion),
  );
  if (!value) throw new StartError(formatMistakes(file, mistakes).join("; "));
  const values = Object.fromEntries(
    names.map((name) => [name, value[name]]).filter(([, given]) => given !== undefined),
  );
  return { model, source: `${basename(file)}, ${nameOf(value)}`, values: values as Values } satisfies Profiled;
}

function* mismatches(profile: EngineProfile, model: string, engineVersion: string | undefined): Iterable<Finding> {
  if (profile.model !== model)
    yield [["model"], `"model" is "${profile.model}", but the plan has this profile for "${model}"`];
  if (engineVersion !== undefined && profile.version !== engineVersion)
    yield [
      ["version"],
      `"version" is ${profile.version === undefined ? "missing" : `"${profile.version}"`}, but the plan's engineVersion of "${model}" is "${engineVersion}": measure again with \`weiche-agent profile ${model}\``,
    ];
}

function nameOf({ engine, version, gpus }: EngineProfile): string {
  const counted = [...new Set(gpus)].map((gpu) => [gpus.filter((other) => other === gpu).length, gpu] as const);
  const named = counted.map(([count, gpu]) => (count === 1 ? gpu : `${count} x ${gpu}`)).join(" and ");
  return `${version === undefined ? engine : `${engine} ${version}`} on ${named || "no known GPU"}`;
}

/** Returns the values of the profile that the plan does not give. */
export function takenFrom({ step, ...values }: Values, written: Partial<RawModel>): Values {
  const rest = Object.fromEntries(Object.entries(values).filter(([name]) => !(name in written)));
  const steps = Object.entries(step ?? {}).filter(([name]) => !(name in (written.step ?? {})));
  return { ...rest, ...(steps.length > 0 && { step: Object.fromEntries(steps) as RawModel["step"] }) };
}

export function withValues<Model extends Partial<RawModel>>(model: Model, { step, ...values }: Values): Model {
  return { ...model, ...values, ...(step && { step: { ...model.step, ...step } }) };
}
