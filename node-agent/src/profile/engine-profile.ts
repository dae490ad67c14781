/** Measures an engine on its GPUs: steps, reading of prompts, and how long it takes to start, stop and wake. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { servedBy, type EngineEndpoint, type EngineSpec } from "../engines/engine.ts";
import type { SlotConfig } from "../config/config.ts";
import type { Dialect } from "../engines/dialects/dialect.ts";
import type { SwitchHistory } from "../slots/switch-history.ts";
import type { SwitchReport } from "../slots/switch-meter.ts";
import { admitted, answersAtOnce, type AskingOptions } from "./engine-answers.ts";
import type { EngineProfile } from "./profile-file.ts";
import { fitStep, type StepPoint } from "./step-fit.ts";
import { aloneOf, prefillOf, stepOf, type Alone } from "./step-times.ts";

type Measured = Omit<EngineProfile, "gpus" | "agent" | "measured">;

interface ProfileOptions extends AskingOptions {
  readonly config: SlotConfig;
  readonly history: SwitchHistory;
  readonly onProgress: (done: number, of: number, what: string) => void;
}

interface Steps {
  readonly alone: readonly Alone[];
  readonly points: readonly StepPoint[];
}

const versionMsMax = 5_000;
const running = [1, 4, 16, 64];
const stepsWanted = 48;
/** Long enough for the first answer to run until the last prompt has been read. */
const answerTokensMax = 1_024;
const windowTokensAssumed = 4_096;
const longPromptTokensMax = 2_048;
/** A word of a prompt has at most so many tokens. */
const tokensPerWord = 4;
/** Most long prompts are this many times as long as the short ones. */
const lengthRatio = 16;

/** Throws an `Error` if the model cannot be measured. */
export async function profileEngine(options: ProfileOptions, model: ModelId): Promise<Measured> {
  const { config, onProgress } = options;
  const engine = config.engines.find((spec) => servedBy(spec).includes(model))!;
  const other = config.engines.find((spec) => spec !== engine);
  const counts = running.filter((count) => count <= engine.maxConcurrent);
  const parts = 2 * counts.length + (other ? 3 : 1);
  let done = 0;
  const tell = (what: string) => onProgress(done++, parts, what);

  tell(`start ${model}`);
  const first = await switched(options, engine);
  const admission = await admitted(options, model, config.name);
  admission.release();
  const { endpoint } = admission;
  const version = await versionOf(options.dialects[engine.dialect], endpoint);
  const { alone, points } = await stepsOf(options, model, counts, endpoint.windowTokens ?? windowTokensAssumed, tell);
  const times = other ? await turns(options, engine, other, tell) : undefined;
  // An engine that sleeps has woken at its last turn, and its first turn was a start if it did not run before.
  const sleeps = engine.sleepLevel !== undefined;
  return {
    ...{ model, engine: engine.dialect, ...(version !== undefined && { version }) },
    ...{ places: engine.maxConcurrent, step: fitStep(points), points: [...points] },
    ...given("startSeconds", startOf(sleeps ? first : (times?.back ?? first))),
    ...given("stopSeconds", secondsOf(times?.away, ["stop", "memory"])),
    ...given("wakeSeconds", sleeps ? startOf(times?.back) : undefined),
    ...given("prefillTokensPerSecond", prefillOf(alone[0]!, alone[1]!)),
  };
}

async function versionOf(dialect: Dialect, endpoint: EngineEndpoint): Promise<string | undefined> {
  return await dialect.version?.(endpoint, AbortSignal.timeout(versionMsMax)).catch(() => undefined);
}

/** Throws an `Error` if an engine cannot run even one answer for long enough. */
async function stepsOf(
  options: ProfileOptions,
  model: ModelId,
  counts: readonly number[],
  windowTokens: number,
  tell: (what: string) => void,
): Promise<Steps> {
  const longWords = Math.floor(Math.min(longPromptTokensMax, windowTokens / 2) / tokensPerWord);
  const alone: Alone[] = [];
  const points: StepPoint[] = [];
  for (const promptWords of [Math.max(1, Math.floor(longWords / lengthRatio)), longWords]) {
    for (const count of counts) {
      tell(`${count} at once, prompts of ${promptWords} words`);
      const tokensMax = Math.min(count === 1 ? stepsWanted : answerTokensMax, Math.floor(windowTokens / 2));
      const wanted = { model, slot: options.config.name, count, promptWords, tokensMax };
      const ask = () => answersAtOnce(options, { ...wanted, stepsWanted: count === 1 ? Infinity : stepsWanted });
      const answers = await ask();
      // An answer that runs alone goes on to its end, where the engine counts its tokens. The first one may be late.
      if (count === 1) alone.push(faster(aloneOf(answers[0]!), aloneOf((await ask())[0]!)));
      const point = stepOf(answers, alone.at(-1)!);
      if (point) points.push(point);
    }
  }
  if (points.length === 0) throw new Error("the engine's answers ended too soon to measure a step");
  return { alone, points };
}

function faster(one: Alone, other: Alone): Alone {
  return one.firstTokenMs < other.firstTokenMs ? one : other;
}

async function turns(options: ProfileOptions, engine: EngineSpec, other: EngineSpec, tell: (what: string) => void) {
  tell(`switch to ${other.model}`);
  const away = await switched(options, other);
  tell(`switch back to ${engine.model}`);
  return { away, back: await switched(options, engine) };
}

/** Activates the engine. Returns the switch that this took, if any. */
async function switched(options: ProfileOptions, { model }: EngineSpec): Promise<SwitchReport | undefined> {
  const { config, history } = options;
  const before = history.all.get(config.name)?.at(-1);
  const admission = await admitted(options, model, config.name);
  admission.release();
  const last = history.all.get(config.name)?.at(-1);
  return last !== before && last?.model === model ? last.report : undefined;
}

function startOf(report: SwitchReport | undefined): number | undefined {
  return secondsOf(report, ["start", "probe"]);
}

function secondsOf(
  report: SwitchReport | undefined,
  phases: readonly (keyof SwitchReport["phasesMs"])[],
): number | undefined {
  return report && phases.reduce((sum, phase) => sum + (report.phasesMs[phase] ?? 0), 0) / 1_000;
}

function given<Name extends string>(name: Name, value: number | undefined): { readonly [name in Name]?: number } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [name in Name]: number });
}
