/** Reads the profile of an engine, whose values replace assumptions of a plan. */
import { basename, resolve } from "node:path";
import { profileSchema, type EngineProfile } from "@weiche/node-agent/src/profile/profile-file.ts";
import { checkYaml, formatMistakes, type Checked, type Finding } from "@weiche/shared/files/config-file.ts";
import { readForStart, StartError } from "@weiche/shared/files/start-error.ts";
import { readConfiguratorTable } from "./configurator-table.ts";
import type { RawModel } from "./plan-schema.ts";

type Values = Partial<Pick<RawModel, (typeof names)[number]>>;

/** What a profile tells about a model of the plan. */
export interface Profiled {
  readonly model: string;
  /** Whether another tool has computed the values. */
  readonly isComputed: boolean;
  /** The name of its file, the engine with its version, and the GPUs. */
  readonly source: string;
  readonly values: Values;
}

const names = ["places", "startSeconds", "stopSeconds", "wakeSeconds", "step", "prefillTokensPerSecond"] as const;

/** Throws `StartError` with each mistake of the file, its line and its field. */
export function readProfile(folder: string, raw: RawModel & { readonly profile: string }): Omit<Profiled, "model"> {
  const file = resolve(folder, raw.profile);
  const isComputed = file.endsWith(".csv");
  const text = readForStart(file).toString();
  const { value, mistakes } = (isComputed ? computed : measured)(text, raw);
  if (!value) throw new StartError(formatMistakes(file, mistakes).join("; "));
  return { isComputed, source: `${basename(file)}, ${value.name}`, values: value.values };
}

type Reader = (text: string, model: RawModel) => Checked<{ readonly name: string; readonly values: Values }>;

const measured: Reader = (text, { model, engineVersion }) => {
  const { value, mistakes } = checkYaml(text, profileSchema, (found) => [
    ...(found.model === model
      ? []
      : [[["model"], `"model" is "${found.model}", but the plan has this profile for "${model}"`] as Finding]),
    ...otherVersion(found.version, model, engineVersion),
    ...(takesNoTime(found.step) ? [[["step"], `"step" takes no time: measure again, or correct it`] as Finding] : []),
  ]);
  if (!value) return { mistakes };
  const values = Object.fromEntries(
    names.map((name) => [name, value[name]]).filter(([, given]) => given !== undefined),
  );
  return { value: { name: nameOf(value), values: values as Values }, mistakes: [] };
};

const computed: Reader = (text, { model, engineVersion }) => {
  const { value, mistakes } = readConfiguratorTable(text);
  if (!value) return { mistakes };
  const { engine, version, gpus, step, prefillTokensPerSecond } = value;
  const [other] = otherVersion(version, model, engineVersion);
  if (other) return { mistakes: [{ line: 2, message: other[1] }] };
  return { value: { name: `${engine} ${version} on ${gpus}`, values: { step, prefillTokensPerSecond } }, mistakes: [] };
};

function otherVersion(version: string | undefined, model: string, wanted: string | undefined): Finding[] {
  if (wanted === undefined || version === wanted) return [];
  const found = version === undefined ? "missing" : `"${version}"`;
  const advice = `measure again with \`weiche-agent profile ${model}\``;
  return [[["version"], `"version" is ${found}, but the plan's engineVersion of "${model}" is "${wanted}": ${advice}`]];
}

function nameOf({ engine, version, gpus }: EngineProfile): string {
  const counted = [...new Set(gpus)].map((gpu) => [gpus.filter((other) => other === gpu).length, gpu] as const);
  const named = counted.map(([count, gpu]) => (count === 1 ? gpu : `${count} x ${gpu}`)).join(" and ");
  return `${version === undefined ? engine : `${engine} ${version}`} on ${named || "no known GPU"}`;
}

export function takesNoTime({ baseMs, perRunningMs, perThousandTokensMs }: RawModel["step"]): boolean {
  return baseMs + perRunningMs + perThousandTokensMs === 0;
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
