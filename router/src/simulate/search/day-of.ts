/** Runs a fleet once more with the plan's first seed, to record what happens over the day. */
import { Simulation } from "../engine/simulation.ts";
import { Timeline } from "../engine/timeline.ts";
import type { Plan } from "../plan/plan.ts";
import type { PlannedLoad } from "../plan/planned-load.ts";
import type { SizedGroup } from "../plan/fleet.ts";
import { trialOptions, type Step } from "./capacity.ts";

const eventsAtOnce = 20_000;

/** `onStep` resolves with whether to continue. Returns what was recorded until then. */
export async function dayOf(
  plan: Plan,
  load: PlannedLoad,
  groups: readonly SizedGroup[],
  onStep: (step: Step) => Promise<boolean>,
): Promise<Timeline> {
  const timeline = new Timeline(load.durationMs);
  const simulation = new Simulation({ ...trialOptions(plan, load, groups).optionsOf(plan.seed), timeline });
  while (simulation.advance(eventsAtOnce)) {
    const share = Math.min(1, simulation.clock.monotonicMs() / load.durationMs);
    if (!(await onStep({ groups, share }))) break;
  }
  simulation.end();
  return timeline;
}
