/** Finds the time of a step and the speed of reading prompts in the times of tokens. */
import type { StepPoint } from "./step-fit.ts";

/** One answer: when it was asked for, and when events with its tokens came. */
export interface TimedAnswer {
  readonly askedMs: number;
  readonly tokensMs: readonly number[];
  /** As the engine counted them. Undefined if the answer was ended before its usage came. */
  readonly promptTokens?: number;
  readonly completionTokens?: number;
}

/** What an answer that ran alone, to its end, shows about all answers with prompts of this length. */
export interface Alone {
  readonly promptTokens: number;
  readonly firstTokenMs: number;
  /** An engine may send several tokens in one event. */
  readonly tokensPerEvent: number;
}

const stepsMin = 8;

/** Whether each answer has this many events since the last one of them began. */
export function isMeasured(answers: readonly TimedAnswer[], steps: number): boolean {
  if (answers.some(({ tokensMs }) => tokensMs.length < steps)) return false;
  const begun = begunMs(answers);
  return answers.every(({ tokensMs }) => tokensMs.at(-steps)! > begun);
}

/** Throws an `Error` if the engine counts no tokens. */
export function aloneOf({ askedMs, tokensMs, promptTokens, completionTokens }: TimedAnswer): Alone {
  if (promptTokens === undefined || completionTokens === undefined)
    throw new Error("the engine reported no usage, so its tokens are unknown");
  if (tokensMs.length === 0) throw new Error("the engine's answer was empty");
  return { promptTokens, firstTokenMs: tokensMs[0]! - askedMs, tokensPerEvent: completionTokens / tokensMs.length };
}

/** The mean step while all answers ran. Undefined if there are none, or some ended too soon after the last one began. */
export function stepOf(
  answers: readonly TimedAnswer[],
  { promptTokens, tokensPerEvent }: Alone,
): StepPoint | undefined {
  if (answers.length === 0) return undefined;
  const begun = begunMs(answers);
  const endMs = Math.min(...answers.map(({ tokensMs }) => tokensMs.at(-1) ?? -Infinity));
  let stepMs = 0;
  let contextTokens = 0;
  for (const { tokensMs } of answers) {
    const within = tokensMs.filter((ms) => ms >= begun && ms <= endMs);
    if (within.length <= stepsMin) return undefined;
    stepMs += (within.at(-1)! - within[0]!) / ((within.length - 1) * tokensPerEvent);
    const before = tokensMs.findIndex((ms) => ms >= begun);
    contextTokens += promptTokens + tokensPerEvent * (before + within.length / 2);
  }
  return { running: answers.length, contextTokens: Math.round(contextTokens), stepMs: stepMs / answers.length };
}

/** Undefined if a longer prompt took no longer. */
export function prefillOf(short: Alone, long: Alone): number | undefined {
  const laterMs = long.firstTokenMs - short.firstTokenMs;
  const tokens = long.promptTokens - short.promptTokens;
  return laterMs > 0 && tokens > 0 ? (1_000 * tokens) / laterMs : undefined;
}

function begunMs(answers: readonly TimedAnswer[]): number {
  return Math.max(...answers.map(({ tokensMs }) => tokensMs[0] ?? Infinity));
}
