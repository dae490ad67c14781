/** `weiche simulate`: answers how many slots a load needs. Needs no router. */
import type { Command } from "commander";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { Actions } from "../actions.ts";
import { Failed } from "../client.ts";
import { ProgressBar } from "./progress-bar.ts";

export function addSimulateCommand(program: Command, actions: Actions): void {
  program
    .command("simulate")
    .argument("<plan>", "a plan.yaml with models, their demand, and perhaps slots and goals")
    .option("--goal <goal...>", 'what must hold, such as "wait.p99<=30s" or "refused<=1%"')
    .description("Simulate a fleet, and find the least number of slots that meets the goals.")
    .action(async (file: string, { goal = [] }: { goal?: readonly string[] }) => {
      const { readPlan } = await import("../../../simulate/plan/plan.ts");
      const { boundsOf, findCapacity, loadOf } = await import("../../../simulate/search/capacity.ts");
      const { answerOf } = await import("../../../simulate/answer/answer.ts");
      const { answerText, boundText } = await import("../../../simulate/answer/answer-text.ts");
      const plan = readPlan(file, goal);
      const load = loadOf(plan);
      const bounds = boundsOf(plan, load);
      const before = answerOf(plan, { bounds, trial: undefined, below: undefined, isStopped: false });
      actions.terminal.errors.write(`${boundText(before)}\n`);
      using bar = new ProgressBar(actions.terminal, systemClock);
      const capacity = await findCapacity(plan, load, bounds, (step) => bar.show(step));
      const answer = answerOf(plan, capacity);
      bar.clear();
      actions.print(answer, (width) => answerText(answer, width));
      if (capacity.isStopped) throw new Failed("stopped before the answer was found");
      if (answer.fleet && !answer.fleet.isMet) throw new Failed("the goals are not met");
    });
}
