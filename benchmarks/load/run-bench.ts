/** Runs a whole bench, from compilation to results. The caller writes the files. */
import { describeMachine, today } from "../../e2e/cluster/measurement.ts";
import { programs as allPrograms } from "../peers/all.ts";
import { installPeers } from "../peers/install.ts";
import type { Program } from "../peers/program.ts";
import { attempt, mayHold, openCampaign, runRounds, startPrograms } from "./campaign.ts";
import type { Campaign, CampaignOptions, Sample, Started } from "./campaign.ts";
import { judgeGoals } from "./goals.ts";
import type { BenchResult } from "./report.ts";
import { scenarios as allScenarios } from "./scenarios.ts";
import { jsonBesideRounds, memoryPerStream, mostStreams } from "./special.ts";
import { subBenches } from "./sub-benches.ts";

interface BenchOptions extends CampaignOptions {
  /** The names of scenarios. Empty means all. */
  readonly scenarios: readonly string[];
  readonly programs: readonly string[];
}

/** In its first seconds a Node.js program needs three times as much per JSON request, and after 20 s still a little more. */
export const warmSeconds = { whole: 40, quick: 6 };

/** The programs of `--quick`. */
const quickPrograms = ["weiche", "nginx", "portkey", "undici", "hops-h2", "hops-h1-tls"];

/** The programs whose memory and most streams are measured. */
const peersForStreams = ["weiche", "nginx", "haproxy", "portkey", "undici", "litellm", "llama-swap"];

/** The programs whose JSON requests are measured beside many streams. */
const programsBeside = ["weiche", "nginx", "undici"];

const specials = [
  { name: "most-streams", what: "the most streams of 40 tokens a second before the p99 gap passes 40 ms" },
  ...[1_000, 5_000, 10_000].map((streams) => ({
    name: `memory-${streams}`,
    what: `memory of ${streams} open streams that say nothing`,
  })),
  { name: "json-beside-0", what: "JSON answers, 16 connections" },
  { name: "json-beside-6000", what: "the same beside 6,000 open streams" },
  { name: "micro", what: "single steps of the hot path" },
  { name: "usage", what: "usage records into the embedded PostgreSQL" },
  { name: "switch", what: "our own share of a switch" },
  { name: "hostile", what: "eight well-behaved streams, a token each 20 ms, beside each attack, on all cores" },
];

/** Throws if a name is unknown. */
export function checkNames({ scenarios, programs }: BenchOptions): void {
  const check = (kind: string, names: readonly string[], known: readonly { readonly name: string }[]) => {
    const all = known.map(({ name }) => name);
    for (const name of names)
      if (!all.includes(name)) throw new Error(`no ${kind} "${name}"; there are: ${all.join(", ")}`);
  };
  check("scenario", scenarios, [...allScenarios, ...specials]);
  check("program", programs, allPrograms);
}

export async function runBench(options: BenchOptions, say: (line: string) => void): Promise<BenchResult> {
  const machine = describeMachine();
  for (const problem of installPeers()) say(problem);
  const wanted = allPrograms.filter(({ name }) =>
    asked(options.programs, name, !options.quick || quickPrograms.includes(name)),
  );
  const missing = wanted.flatMap((program) => {
    const why = program.missing();
    return why === undefined ? [] : [{ name: program.name, why }];
  });
  const here = wanted.filter((program) => program.missing() === undefined);
  const isAsked = (name: string, otherwise = true) => asked(options.scenarios, name, otherwise);
  await using opened = new AsyncDisposableStack();
  const campaign = await openCampaign({ ...options, takesPart: () => true, say }, opened);
  const loads = allScenarios.filter(({ name, quick }) => isAsked(name, !options.quick || quick === true));
  const needsStarted =
    loads.length > 0 || ["most-streams", "json-beside-6000"].some((name) => isAsked(name, !options.quick));
  const started = needsStarted ? await startPrograms(campaign, here, opened) : [];
  const samples = loads.length > 0 ? await runRounds(campaign, loads, started) : [];
  if (isAsked("most-streams", !options.quick)) samples.push(...(await mostStreamsOf(campaign, started)));
  if (isAsked("json-beside-6000", !options.quick)) {
    const beside = started.filter(({ program }) => programsBeside.includes(program.name));
    samples.push(...(await jsonBesideRounds(campaign, beside)));
  }
  for (const { running } of started) await running[Symbol.asyncDispose]();
  for (const streams of [1_000, 5_000, 10_000])
    if (isAsked(`memory-${streams}`, !options.quick)) samples.push(...(await memoryOf(campaign, here, streams)));
  const isSubAsked = (name: string) => isAsked(name, !options.quick || name === "micro");
  const { micro, samples: more } = await subBenches(isSubAsked, campaign.bench.cores.test, say);
  samples.push(...more);
  const { quick, rounds, seed } = options;
  return {
    ...{ date: today(), machine, cores: campaign.bench.cores, missing, samples, micro },
    options: { quick, rounds, seed },
    programs: here.map(({ name, what }) => {
      const running = started.find(({ program }) => program.name === name)?.running;
      return { name, what, version: running?.version ?? "" };
    }),
    scenarios: [...allScenarios, ...specials].map(({ name, what }) => ({ name, what })),
    goals: judgeGoals(samples),
  };
}

function asked(names: readonly string[], name: string, otherwise: boolean): boolean {
  return names.length > 0 ? names.includes(name) : otherwise;
}

/** Runs at most two rounds, because a search takes almost a minute and its result is coarse. */
async function mostStreamsOf(campaign: Campaign, started: readonly Started[]): Promise<Sample[]> {
  const samples: Sample[] = [];
  const chosen = started.filter(({ program }) => peersForStreams.includes(program.name));
  for (let round = 1; round <= Math.min(2, campaign.rounds); round++)
    for (const one of chosen)
      await attempt(campaign, one.program.name, async () => void samples.push(await mostStreams(campaign, one, round)));
  return samples;
}

async function memoryOf(campaign: Campaign, programs: readonly Program[], streams: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (const program of programs.filter(({ name }) => peersForStreams.includes(name))) {
    if (!mayHold(campaign, program, streams)) continue;
    const rounds = streams === 5_000 && program.name === "weiche" ? Math.min(3, campaign.rounds) : 1;
    for (let round = 1; round <= rounds; round++)
      await attempt(campaign, program.name, async () => {
        samples.push(await memoryPerStream(campaign, program, streams, round));
      });
  }
  return samples;
}
