/** Answers the plan in a file: reads and checks everything, prints the lower bound, then runs. */
import { readPlan } from "../plan/plan.ts";
import { checkFailures } from "../plan/node-failure.ts";
import { loadOf } from "../plan/planned-load.ts";
import { askWhatIf } from "../plan/what-if.ts";
import type { WhatIf } from "../loads/changes.ts";
import { findGrouping, requireGoals } from "../search/best-grouping.ts";
import { boundsOf, findCapacity, type Step } from "../search/capacity.ts";
import { assumptionsOf, policiesOf, vary } from "../search/variations.ts";
import { dayOf } from "../search/day-of.ts";
import { answerOf, type Answer } from "./answer.ts";
import { answerText } from "./answer-text.ts";
import { chartOf } from "./chart.ts";

export interface Asked {
  readonly goal?: readonly string[];
  readonly policy?: readonly string[];
  readonly grouping?: boolean;
  readonly sensitivity?: boolean;
  readonly scale?: number;
  readonly days?: number;
  readonly whatIf?: readonly string[];
}

interface Events {
  /** The lower bound is known, and nothing has run. */
  readonly onBound: (before: Answer) => void;
  /** Resolves with whether to continue. */
  readonly onStep: (step: Step) => Promise<boolean>;
  /** Gets the chart as SVG. Undefined if none is wanted. */
  readonly onChart?: (svg: string) => void;
}

/** Throws `StartError` with what to correct before anything runs. */
export async function simulatePlan(file: string, asked: Asked, { onBound, onStep, onChart }: Events): Promise<Answer> {
  const given = readPlan(file, asked.goal ?? []);
  const inOneGroup = { ...given, fleet: [{ models: Object.keys(given.models) }] };
  const { plan, changes } = askWhatIf(asked.grouping ? inOneGroup : given, asked.whatIf ?? []);
  if (asked.grouping) requireGoals(plan);
  const policies = (asked.policy ?? []).flatMap((text) => policiesOf(text, plan));
  const { scale, days } = asked;
  const scales: WhatIf[] = scale === undefined ? [] : [{ text: `load x ${scale}`, kind: "scaled", factor: scale }];
  const load = loadOf(plan, { ...(days !== undefined && { days }), whatIf: [...scales, ...changes] });
  checkFailures(plan, load);
  const bounds = boundsOf(plan, load);
  onBound(answerOf(plan, load, { bounds, trial: undefined, below: undefined, isStopped: false }));
  const capacity = await (asked.grouping ? findGrouping : findCapacity)(plan, load, bounds, onStep);
  const { trial, isStopped } = capacity;
  if (!trial || isStopped) return answerOf(plan, load, capacity);
  const assumptions = asked.sensitivity ? assumptionsOf(plan) : [];
  const varied = await vary([...policies, ...assumptions], load, trial.groups, onStep);
  const answer = answerOf(plan, load, {
    ...capacity,
    isStopped: varied.length < policies.length + assumptions.length,
    policies: varied.slice(0, policies.length),
    sensitivity: varied.slice(policies.length),
  });
  if (onChart && !answer.isStopped) {
    const timeline = await dayOf(plan, load, trial.groups, onStep);
    const [title] = answerText(answer).split("\n") as [string];
    onChart(chartOf({ timeline, models: Object.keys(plan.models), title, startsAtMs: load.startsAtMs }));
  }
  return answer;
}
