/** `weiche simulate`: answers how many slots a load needs. Needs no router. */
import { writeFileSync } from "node:fs";
import { InvalidArgumentError, type Command } from "commander";
import { requireWritable } from "@weiche/shared/files/start-error.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import type { Asked } from "../../../simulate/answer/simulate-plan.ts";
import type { Actions } from "../actions.ts";
import { Failed, Stopped } from "../client.ts";
import { ProgressBar } from "./progress-bar.ts";

const numberMax = 1_000;

export function addSimulateCommand(program: Command, actions: Actions): void {
  program
    .command("simulate")
    .argument("<plan>", "a plan.yaml with models, their demand, and perhaps slots and goals")
    .option("--goal <goal...>", 'what must hold, such as "wait.p99<=30s" or "refused<=1%"')
    .option(
      "--policy <rules...>",
      'rules to compare with those of the plan, such as "drainOpenSeconds=5,fairness=false" or "minResidencySeconds=0,1,2,5,10"',
    )
    .option("--grouping", "find the models that should share slots, instead of the plan's fleet")
    .option("--sensitivity", "show which assumption about the engines changes the waits most")
    .option("--chart <file>", "write waits and slots over the day as SVG")
    .option("--scale <factor>", "multiply the requests, with copies from further accounts", positive)
    .option("--days <days>", "simulate so many days, of a trace the first ones", positive)
    .option(
      "--what-if <change...>",
      'change load or fleet: "load doubles", "model NAME x 1.5", "model NAME stops", "model NEW joins like NAME", "nobody calls model NAME from 22:00 to 6:00", "node node-2 fails at 10:00 for 2h"',
    )
    .description("Simulate a fleet, and find the least number of slots that meets the goals.")
    .action(async (file: string, { chart, ...options }: Asked & { readonly chart?: string }) => {
      if (chart !== undefined) requireWritable(chart);
      const { simulatePlan } = await import("../../../simulate/answer/simulate-plan.ts");
      const { answerText, boundText } = await import("../../../simulate/answer/answer-text.ts");
      using bar = new ProgressBar(actions.terminal, systemClock);
      const answer = await simulatePlan(file, options, {
        onBound: (before) => void actions.terminal.errors.write(`${boundText(before)}\n`),
        onStep: (step) => bar.show(step),
        ...(chart !== undefined && { onChart: (svg) => writeFileSync(chart, svg) }),
      });
      bar.clear();
      actions.print(answer, (width) => answerText(answer, width));
      if (answer.isStopped) throw new Stopped("stopped before the answer was found");
      if (answer.fleet && !answer.fleet.isMet) throw new Failed("the goals are not met");
    });
}

function positive(text: string): number {
  const number = Number(text);
  if (number > 0 && number <= numberMax) return number;
  throw new InvalidArgumentError(`It must be a number above 0 and at most ${numberMax}.`);
}
