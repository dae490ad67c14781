/** Measures an engine on its GPUs: steps, reading of prompts, and how long it takes to start, stop and wake. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { servedBy, type EngineEndpoint, type EngineSpec } from "../engines/engine.ts";
import type { SlotConfig } from "../config/config.ts";
import type { Dialect } from "../engines/dialects/dialect.ts";
import type { SwitchHistory } from "../slots/switch-history.ts";
import type { SwitchReport } from "../slots/switch-meter.ts";
import { admitted, answersAtOnce, type AskingOptions } from "./engine-answers.ts";
import type { EngineProfile } from "./profile-file.ts";
import type { ProfileEvents } from "./profile-run.ts";
import { fitStep, type StepPoint } from "./step-fit.ts";
import { aloneOf, prefillOf, stepOf, type Alone } from "./step-times.ts";

type Measured = Omit<EngineProfile, "gpus" | "agent" | "measured">;

interface ProfileOptions extends AskingOptions, ProfileEvents {
  readonly config: SlotConfig;
  readonly history: SwitchHistory;
  /** The models of the slot whose engines sleep now. */
  readonly asleep: () => readonly ModelId[];
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
  const { config, onProgress, onKnown, asleep } = options;
  const engine = config.engines.find((spec) => servedBy(spec).includes(model))!;
  const other = config.engines.find((spec) => spec !== engine);
  const counts = running.filter((count) => count <= engine.maxConcurrent);
  const parts = 2 * counts.length + (other ? 3 : 1);
  let done = 0;
  const tell = (what: string) => onProgress(done++, parts, what);

  let known: Partial<Measured> = { model, engine: engine.dialect, places: engine.maxConcurrent };
  const note = (more: Partial<Measured>) => onKnown((known = { ...known, ...more }));

  tell(`start ${model}`);
  const wasAsleep = asleep().includes(engine.model);
  const first = await switched(options, engine);
  const started = given("startSeconds", wasAsleep ? undefined : startOf(first));
  const admission = await admitted(options, model, config.name);
  admission.release();
  const { endpoint } = admission;
  const version = await versionOf(options.dialects[engine.dialect], endpoint);
  note({ ...(version !== undefined && { version }), ...started });
  const windowTokens = endpoint.windowTokens ?? windowTokensAssumed;
  const { alone, points } = await stepsOf(options, model, { counts, windowTokens, tell, note });
  const speed = {
    ...{ step: fitStep(points), points: [...points] },
    ...given("prefillTokensPerSecond", prefillOf(alone[0]!, alone[1]!)),
  };
  note(speed);
  if (other) {
    tell(`switch to ${other.model}`);
    note(given("stopSeconds", secondsOf(await switched(options, other), ["stop", "memory"])));
    tell(`switch back to ${engine.model}`);
    const back = startOf(await switched(options, engine));
    note(given(engine.sleepLevel === undefined ? "startSeconds" : "wakeSeconds", back));
  }
  return { ...known, ...speed, model, engine: engine.dialect, places: engine.maxConcurrent };
}

async function versionOf(dialect: Dialect, endpoint: EngineEndpoint): Promise<string | undefined> {
  return await dialect.version?.(endpoint, AbortSignal.timeout(versionMsMax)).catch(() => undefined);
}

interface StepsWanted {
  readonly counts: readonly number[];
  readonly windowTokens: number;
  readonly tell: (what: string) => void;
  readonly note: (known: Partial<Measured>) => void;
}

/** Throws an `Error` if an engine cannot run even one answer for long enough. */
async function stepsOf(
  options: ProfileOptions,
  model: ModelId,
  { counts, windowTokens, tell, note }: StepsWanted,
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
      if (!point) continue;
      points.push(point);
      note({ step: fitStep(points), points: [...points] });
    }
  }
  if (points.length === 0) throw new Error("the engine's answers ended too soon to measure a step");
  return { alone, points };
}

function faster(one: Alone, other: Alone): Alone {
  return one.firstTokenMs < other.firstTokenMs ? one : other;
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
