/** `weiche-agent profile`: measures an engine through the agent and writes the profile to a file. */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { stringify } from "yaml";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import type { EngineProfile } from "../profile/profile-file.ts";
import type { ProfileState } from "../profile/profile-run.ts";

interface Agent {
  ask(method: "GET" | "POST", path: string, body?: unknown): Promise<unknown>;
  print(value: unknown, text: string): void;
  /** Makes the error of a refusal. */
  refused(message: string): Error;
}

const lookEveryMs = 300;

export function addProfileCommand(program: Command, agent: Agent): void {
  program
    .command("profile")
    .argument("<model>")
    .option("--out <file>", "the file of the profile; by default MODEL.profile.yaml in this directory")
    .option("--while-serving", "measure even while requests run, which slows them down and makes the profile worse")
    .description(
      "Measure a model's engine: steps, prompts, start, stop and wake. Writes a profile for `weiche simulate`.",
    )
    .action(
      async (model: string, { out, whileServing }: { readonly out?: string; readonly whileServing?: boolean }) => {
        const file = out ?? `${model.replaceAll(/[^\w.-]/g, "-")}.profile.yaml`;
        const profile = rounded(await measured(agent, await agent.ask("POST", "/profile", { model, whileServing })));
        try {
          writeFileSync(file, stringify(profile));
        } catch (error) {
          throw agent.refused(`cannot write ${file}: ${(error as NodeJS.ErrnoException).code}`);
        }
        agent.print(profile, `${file}: ${summary(profile)}`);
      },
    );
}

/** Shows the progress on stderr. Ctrl-C ends the measurement, too. */
async function measured(agent: Agent, begun: unknown): Promise<EngineProfile> {
  const stop = () => void agent.ask("POST", "/profile/stop");
  process.once("SIGINT", stop);
  try {
    let shown = "";
    for (let state = begun as ProfileState; ; state = (await agent.ask("GET", "/profile")) as ProfileState) {
      if (state.state === "done") return state.profile;
      if (state.state === "failed") throw agent.refused(`cannot measure ${state.model}: ${state.error}`);
      if (state.state === "none") throw agent.refused("the agent has restarted meanwhile");
      const line = `${state.done + 1} of ${state.of}: ${state.what}`;
      if (line !== shown) console.error(plainText(line));
      shown = line;
      await sleep(lookEveryMs);
    }
  } finally {
    process.off("SIGINT", stop);
  }
}

/** Four digits, because a measurement has no more. */
function rounded(profile: EngineProfile): EngineProfile {
  const text = JSON.stringify(profile, (_, value: unknown) =>
    typeof value === "number" ? Number(value.toPrecision(4)) : value,
  );
  return JSON.parse(text) as EngineProfile;
}

function summary({ engine, version, gpus, step, points, ...times }: EngineProfile): string {
  const { startSeconds, stopSeconds, wakeSeconds, prefillTokensPerSecond } = times;
  const shown = (name: string, value: number | undefined, unit: string) =>
    `${name} ${value === undefined ? "not measured" : `${value} ${unit}`}`;
  return [
    `${version === undefined ? engine : `${engine} ${version}`} on ${gpus.length > 0 ? gpus.join(" and ") : "no known GPU"}`,
    `a step takes ${step.baseMs} ms, ${step.perRunningMs} ms for each answer and ${step.perThousandTokensMs} ms for a thousand tokens of context`,
    `measured with up to ${Math.max(...points.map(({ running }) => running))} answers at once`,
    shown("prompts", prefillTokensPerSecond, "tokens/s"),
    [shown("start", startSeconds, "s"), shown("stop", stopSeconds, "s"), shown("wake", wakeSeconds, "s")].join(", "),
  ].join("\n  ");
}
