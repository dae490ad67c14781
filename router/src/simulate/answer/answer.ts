/** The answer to a plan as data, for `--json`. */
import { version } from "@weiche/shared/program/version.ts";
import type { Capacity } from "../search/capacity.ts";
import type { Trial, Verdict } from "../search/trial.ts";
import type { SizedGrouping } from "../search/best-grouping.ts";
import type { Varied } from "../search/variations.ts";
import type { Measured } from "../engine/measured.ts";
import type { ModelTally } from "../engine/tally.ts";
import type { Plan } from "../plan/plan.ts";
import type { PlannedLoad } from "../plan/planned-load.ts";

/** Raised when a field changes its meaning or goes away. */
const schemaVersion = 1;

export type Answer = ReturnType<typeof answerOf>;

interface Found extends Capacity {
  readonly policies?: readonly Varied[];
  readonly sensitivity?: readonly Varied[];
  readonly groupings?: readonly SizedGrouping[];
}

export function answerOf(plan: Plan, load: Pick<PlannedLoad, "assumed" | "changes">, found: Found) {
  const { bounds, trial, below, isStopped, policies = [], sensitivity = [], groupings = [] } = found;
  return {
    ...{ schemaVersion, version, isStopped },
    seed: plan.seed,
    runs: trial?.measured.runs ?? 0,
    goals: plan.parsedGoals.map(({ text }) => text),
    lowerBound: {
      slots: bounds.groups.reduce((sum, slots) => sum + slots, 0),
      models: bounds.models.map(({ model, perSecond, aloneSeconds, askedShare, busySlots }) => ({
        ...{ model, requestsPerSecond: rounded(perSecond), aloneSeconds: rounded(aloneSeconds) },
        ...{ askedShare: rounded(askedShare), busySlots: rounded(busySlots) },
      })),
    },
    fleet: trial && fleetOf(trial, plan),
    oneLess: below && fleetOf(below, plan),
    models: trial ? Object.keys(plan.models).map((model) => modelOf(model, trial.measured)) : [],
    all: trial && talliesOf(trial.measured.all),
    slots: trial ? trial.measured.slots.map(slotOf) : [],
    policies: policies.map(variedOf),
    sensitivity: sensitivity.map(variedOf),
    /** The best first. */
    groupings: groupings.map(({ groups, slots, isMet, measured }) => {
      const { waitSeconds, firstTokenSeconds, refusedShare } = talliesOf(measured.all);
      return { groups, slots, isMet, waitSeconds, firstTokenSeconds, refusedShare };
    }),
    /** The share of the runs that was done, if the only fleet was stopped. Otherwise 1. */
    doneShare: trial ? rounded(trial.doneShare) : 0,
    /** How load and fleet differ from the plan, as written. */
    changes: [...load.changes, ...plan.failures.map(({ text }) => text)],
    /** The values that profiles of engines give to the plan. */
    profiles: plan.profiles,
    assumed: [
      ...assumedSlots(plan, bounds),
      ...plan.assumed,
      ...load.assumed.map((value) => ({ path: "load", models: [], value })),
    ],
  };
}

function assumedSlots({ fleet, parsedGoals }: Plan, { groups }: Found["bounds"]): Plan["assumed"] {
  if (parsedGoals.length > 0) return [];
  const value = (index: number) => `${groups[index]!} (the lower bound, because no goal is given)`;
  return fleet.flatMap(({ models, slots }, index) =>
    slots === undefined ? [{ path: "slots", models, value: value(index) }] : [],
  );
}

function fleetOf({ groups, verdicts, isMet }: Trial, { slotsPerNode }: Plan) {
  const slots = groups.reduce((sum, group) => sum + group.slots, 0);
  return { slots, nodes: Math.ceil(slots / slotsPerNode), groups, isMet, verdicts: verdicts.map(verdictOf) };
}

function variedOf({ name, trial: { measured, isMet, verdicts } }: Varied) {
  const { waitSeconds, firstTokenSeconds, refusedShare } = talliesOf(measured.all);
  const switches = measured.slots.reduce((sum, slot) => sum + slot.switches, 0);
  return {
    ...{ name, waitSeconds, firstTokenSeconds, refusedShare, isMet, verdicts: verdicts.map(verdictOf) },
    switchesPerHour: rounded(switches / (measured.totalMs / 3_600_000)),
  };
}

function verdictOf({ goal, model, value, upper, isMet }: Verdict) {
  const { text, name, isShare } = goal;
  return { goal: text, name, isShare, model, value: rounded(value), upper: rounded(upper), isMet };
}

function modelOf(model: string, measured: Measured) {
  const hours = measured.totalMs / 3_600_000;
  const activeMs = measured.slots.reduce((sum, slot) => sum + (slot.activeMs.get(model as never) ?? 0), 0);
  return {
    model,
    ...talliesOf(measured.of(model)),
    /** The mean number of slots on which it is active. */
    activeSlots: rounded(activeMs / measured.totalMs),
    switchesPerHour: rounded((measured.switches.get(model) ?? 0) / hours),
  };
}

function talliesOf({ requests, served, attempts, refused, limited, broken, gaveUp, wait, firstToken }: ModelTally) {
  const seconds = (ms: number) => rounded(ms / 1_000);
  return {
    ...{ requests, served, gaveUp, broken },
    refusedShare: rounded(refused / Math.max(1, attempts)),
    limitedShare: rounded(limited / Math.max(1, attempts)),
    waitSeconds: {
      ...{ mean: seconds(wait.meanMs), p50: seconds(wait.quantileMs(0.5)), p95: seconds(wait.quantileMs(0.95)) },
      ...{ p99: seconds(wait.quantileMs(0.99)), max: seconds(wait.maxMs) },
    },
    firstTokenSeconds: {
      ...{ p50: seconds(firstToken.quantileMs(0.5)), p95: seconds(firstToken.quantileMs(0.95)) },
      p99: seconds(firstToken.quantileMs(0.99)),
    },
  };
}

function slotOf({ name, node, totalMs, drainMs, switchMs, switches, activeMs }: Measured["slots"][number]) {
  const share = (ms: number) => rounded(ms / Math.max(1, totalMs));
  return {
    ...{ node, slot: name, switchingShare: share(switchMs), drainingShare: share(drainMs) },
    switchesPerHour: rounded(switches / (totalMs / 3_600_000)),
    active: Object.fromEntries(Array.from(activeMs, ([model, ms]) => [model, share(ms)])),
  };
}

/** Six digits, so that the last bits of a processor's logarithms do not show. */
function rounded(value: number): number {
  return Number(value.toPrecision(6));
}
