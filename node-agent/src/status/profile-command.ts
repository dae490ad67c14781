/** `weiche-agent profile`: measures an engine through the agent and writes the profile to a file. */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { stringify } from "yaml";
import { requireWritable, unwritable } from "@weiche/shared/files/start-error.ts";
import { plainText } from "@weiche/shared/program/plain-text.ts";
import type { EngineProfile } from "../profile/profile-file.ts";
import type { ProfileState } from "../profile/profile-run.ts";

interface Agent {
  ask(method: "GET" | "POST", path: string, body?: unknown): Promise<unknown>;
  print(value: unknown, text: string): void;
  /** Makes the error of a refusal. */
  refused(message: string): Error;
  /** Makes the error of a command that a signal has ended. */
  stopped(message: string): Error;
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
        requireWritable(file);
        const ended = await measured(agent, await agent.ask("POST", "/profile", { model, whileServing }));
        if (ended.state === "stopped") {
          const known = rounded(ended.known);
          agent.print(known, `known so far, and not written to ${file}: ${summary(known)}`);
          throw agent.stopped("stopped before everything was measured");
        }
        const profile = rounded(ended.profile);
        try {
          writeFileSync(file, stringify(profile));
        } catch (error) {
          throw unwritable(file, error);
        }
        agent.print(profile, `${file}: ${summary(profile)}`);
      },
    );
}

/** Signals of a user who leaves: Ctrl-C, `kill`, and a closed terminal. */
const ends = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

type Ended = Extract<ProfileState, { readonly state: "done" | "stopped" }>;

/** Shows the progress on stderr. Ctrl-C ends the measurement, too. */
async function measured(agent: Agent, begun: unknown): Promise<Ended> {
  const stop = () => void agent.ask("POST", "/profile/stop");
  for (const signal of ends) process.once(signal, stop);
  try {
    let shown = "";
    for (let state = begun as ProfileState; ; state = (await agent.ask("GET", "/profile")) as ProfileState) {
      if (state.state === "done" || state.state === "stopped") return state;
      if (state.state === "failed") throw agent.refused(`cannot measure ${state.model}: ${state.error}`);
      if (state.state === "none") throw agent.refused("the agent has restarted meanwhile");
      const line = `${state.done + 1} of ${state.of}: ${state.what}`;
      if (line !== shown) console.error(plainText(line));
      shown = line;
      await sleep(lookEveryMs);
    }
  } finally {
    for (const signal of ends) process.off(signal, stop);
  }
}

/** Four digits, because a measurement has no more. */
function rounded<Profile extends Partial<EngineProfile>>(profile: Profile): Profile {
  const text = JSON.stringify(profile, (_, value: unknown) =>
    typeof value === "number" ? Number(value.toPrecision(4)) : value,
  );
  return JSON.parse(text) as Profile;
}

function summary({ engine, version, gpus, step, points = [], ...times }: Partial<EngineProfile>): string {
  if (engine === undefined) return "nothing is measured yet";
  const { startSeconds, stopSeconds, wakeSeconds, prefillTokensPerSecond } = times;
  const shown = (name: string, value: number | undefined, unit: string) =>
    `${name} ${value === undefined ? "not measured" : `${value} ${unit}`}`;
  return [
    `${version === undefined ? engine : `${engine} ${version}`}${gpus === undefined ? "" : ` on ${gpus.length > 0 ? gpus.join(" and ") : "no known GPU"}`}`,
    step === undefined
      ? "steps not measured"
      : `a step takes ${step.baseMs} ms, ${step.perRunningMs} ms for each answer and ${step.perThousandTokensMs} ms for a thousand tokens of context`,
    ...(points.length > 0
      ? [`measured with up to ${Math.max(...points.map(({ running }) => running))} answers at once`]
      : []),
    shown("prompts", prefillTokensPerSecond, "tokens/s"),
    [shown("start", startSeconds, "s"), shown("stop", stopSeconds, "s"), shown("wake", wakeSeconds, "s")].join(", "),
  ].join("\n  ");
}
