/** Runs one fleet with several seeds and compares the results with the goals. */
import type { ModelTally } from "../engine/tally.ts";
import { Measured } from "../engine/measured.ts";
import { Simulation, type SimulationOptions } from "../engine/simulation.ts";
import type { Goal } from "../plan/goals.ts";
import type { SizedGroup } from "../plan/fleet.ts";

/** How a trial reports its progress, and how it is stopped. */
interface Control {
  /** Called after some events, with the completed share of the run. Resolves with whether to continue. */
  goOn(share: number): Promise<boolean>;
}

export interface Verdict {
  readonly goal: Goal;
  /** The model with the worst value. */
  readonly model: string;
  /** The mean over the seeds. */
  readonly value: number;
  /** The upper end of its 95 % interval over the seeds. The goal is met if the bound reaches it. */
  readonly upper: number;
  readonly isMet: boolean;
}

export interface Trial {
  readonly groups: readonly SizedGroup[];
  readonly measured: Measured;
  /** One for each goal. */
  readonly verdicts: readonly Verdict[];
  readonly isMet: boolean;
  /** The share of the runs that was done before it was stopped. 1 if it was not. */
  readonly doneShare: number;
}

/** `optionsOf` returns the options of the run with a seed. */
interface TrialOptions {
  readonly groups: readonly SizedGroup[];
  readonly goals: readonly Goal[];
  readonly seeds: readonly number[];
  readonly optionsOf: (seed: number) => SimulationOptions;
  /** Whether every seed is run, even if the first one misses a goal by far. */
  readonly isWhole?: boolean;
}

/** Events between two reports of the progress. */
const eventsAtOnce = 20_000;

/** Measures what has happened until it is stopped. */
export async function tryFleet(
  { groups, goals, seeds, optionsOf, isWhole }: TrialOptions,
  control: Control,
): Promise<Trial> {
  let doneShare = 1;
  const measured = new Measured();
  const tallies: ReadonlyMap<string, ModelTally>[] = [];
  for (const [index, seed] of seeds.entries()) {
    const options = optionsOf(seed);
    const simulation = new Simulation(options);
    while (simulation.advance(eventsAtOnce)) {
      const share = Math.min(1, simulation.clock.monotonicMs() / options.durationMs);
      const done = (index + share) / seeds.length;
      if (await control.goOn(done)) continue;
      doneShare = Math.min(done, 1 - Number.EPSILON);
      break;
    }
    simulation.end();
    measured.add(simulation);
    tallies.push(simulation.tally.models);
    if (doneShare < 1) break;
    if (!isWhole && isHopeless(goals, tallies)) break;
  }
  const verdicts = goals.map((goal) => worst(goal, tallies));
  return { groups, measured, verdicts, doneShare, isMet: verdicts.every(({ isMet }) => isMet) };
}

/** A first run that exceeds a bound by half shows enough. */
function isHopeless(goals: readonly Goal[], tallies: readonly ReadonlyMap<string, ModelTally>[]): boolean {
  return tallies.length === 1 && goals.some((goal) => worst(goal, tallies).value > 1.5 * goal.most);
}

function worst(goal: Goal, tallies: readonly ReadonlyMap<string, ModelTally>[]): Verdict {
  const models = goal.model === undefined ? new Set(tallies.flatMap((each) => [...each.keys()])) : [goal.model];
  const verdicts = Array.from(models, (model) => {
    const values = tallies.flatMap((each) => {
      const tally = each.get(model);
      return tally ? goal.of(tally) : [];
    });
    return verdictOf(goal, model, values);
  });
  const most = verdicts.toSorted((a, b) => b.upper - a.upper)[0];
  return most ?? { goal, model: goal.model ?? "", value: 0, upper: 0, isMet: true };
}

function verdictOf(goal: Goal, model: string, values: readonly number[]): Verdict {
  const value = values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);
  const variance = values.reduce((sum, one) => sum + (one - value) ** 2, 0) / Math.max(1, values.length - 1);
  const upper = value + studentOf(values.length - 1) * Math.sqrt(variance / Math.max(1, values.length));
  return { goal, model, value, upper, isMet: upper <= goal.most };
}

/** Student's t for a 95 % interval with both ends. */
const student = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

function studentOf(freedom: number): number {
  return student[freedom] ?? (freedom < 0 ? 0 : 1.96 + 2.4 / freedom);
}
