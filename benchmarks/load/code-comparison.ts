/**
 * Measures the working tree and the code of a commit in the same rounds, so that disturbances of the machine affect both.
 * Between two days, ratios differ as much by the machine as by the code.
 */
import { programs } from "../peers/all.ts";
import { direct, openCampaign, runRounds, startPrograms } from "./campaign.ts";
import type { CommittedCode } from "../../e2e/cluster/committed-code.ts";
import { committedPrograms } from "./committed-programs.ts";
import { changesOf, isChanging, type Change } from "./goals.ts";
import { scenarios as allScenarios } from "./scenarios.ts";
import { jsonBesideRounds } from "./special.ts";
import { short } from "./statistics.ts";

const loads = allScenarios.filter(({ name }) =>
  ["json-64", "stream-64x10", "stream-256x20", "first-byte"].includes(name),
);
const besideName = "json-beside-6000";
const scenarios = [...loads.map(({ name }) => name), besideName];

/** Many short rounds, because single values change by 15 % and more within seconds. */
const options = { quick: true, rounds: 10, warmSeconds: 20 };

/** The suffix of the names of the commit's programs. */
const older = "-before";

/** Compares within ten minutes. Throws if a compared value could not be measured. */
export async function compareCode(
  committed: CommittedCode,
  seed: number,
  say: (line: string) => void,
): Promise<readonly Change[]> {
  await using opened = new AsyncDisposableStack();
  const takesPart = (scenario: string, name: string) => isChanging(scenario, name.replace(older, ""));
  const campaign = await openCampaign({ ...options, seed, takesPart, say }, opened);
  const isNeeded = ({ name }: { readonly name: string }) => scenarios.some((scenario) => isChanging(scenario, name));
  const theirs = (await committedPrograms(committed))
    .filter(isNeeded)
    .map((one) => ({ ...one, name: one.name + older }));
  const started = await startPrograms(campaign, [...programs.filter(isNeeded), ...theirs], opened);
  const beside = started.filter(({ program }) => takesPart(besideName, program.name));
  const samples = [...(await runRounds(campaign, loads, started)), ...(await jsonBesideRounds(campaign, beside))];
  return changesOf(
    scenarios,
    samples.filter(({ program }) => !program.endsWith(older)),
    samples
      .filter(({ program }) => program.endsWith(older) || program === direct)
      .map((sample) => ({ ...sample, program: sample.program.replace(older, "") })),
  );
}

/** Returns the changes as lines of a table. */
export function changeLines(changes: readonly Change[]): string[] {
  return changes.map(({ what, worse }) => {
    const { median, min, max } = worse;
    return `${short(median).padStart(6)}  (${short(min)}–${short(max)})  ${what}`;
  });
}
