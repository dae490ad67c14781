/**
 * Runs the rounds of a bench. Each program starts once and stays warm. In each round and scenario the programs take turns in
 * random order, so that disturbances of the machine affect all of them. Only the measured program runs on the test core.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "@weiche/shared/random.ts";
import type { Program, RunningProgram } from "../peers/program.ts";
import { measure, openBench, valuesOf, type Bench } from "./measure.ts";
import { descriptorsFor, pin, raiseDescriptors } from "../../e2e/cluster/processes.ts";
import { quickLoad, type Scenario } from "./scenarios.ts";
import { shuffled, type Buckets } from "./statistics.ts";

export interface Sample {
  readonly scenario: string;
  readonly program: string;
  readonly round: number;
  readonly values: Readonly<Record<string, number>>;
  readonly delays?: Buckets;
}

export interface Started {
  readonly program: Program;
  readonly running: RunningProgram;
}

export interface CampaignOptions {
  readonly quick: boolean;
  readonly rounds: number;
  /** For how many seconds each program is loaded before its first round. */
  readonly warmSeconds: number;
  readonly seed: number;
}

export interface Campaign extends CampaignOptions {
  readonly bench: Bench;
  /** The most file descriptors of one process. */
  readonly descriptors: number;
  readonly random: () => number;
  /** Returns whether this program is measured in this scenario. */
  readonly takesPart: (scenario: string, program: string) => boolean;
  readonly say: (line: string) => void;
}

/** The client asks the engine directly, without a program between them. */
export const direct = "direct";

/** Opens a campaign. Its engine runs until `opened` is closed. */
export async function openCampaign(
  options: CampaignOptions & Pick<Campaign, "takesPart" | "say">,
  opened: AsyncDisposableStack,
): Promise<Campaign> {
  const descriptors = raiseDescriptors();
  const random = createRandom(options.seed);
  return { ...options, bench: await openBench(opened), descriptors, random: () => random.next() };
}

/** Returns whether a program has descriptors for this number of streams, and reports it if not. */
export function mayHold({ say, descriptors }: Campaign, program: Program, streams: number): boolean {
  const needed = descriptorsFor(streams, program.connectionsPerStream);
  const what = `${program.name} with ${streams} streams`;
  if (descriptors < needed)
    say(`${what} is left out: ${descriptors} file descriptors per process (ulimit -n), ${needed} are needed`);
  return descriptors >= needed;
}

/** Starts the programs on the load's core. Reports and omits programs that fail. */
export async function startPrograms(
  { bench, say }: Campaign,
  programs: readonly Program[],
  opened: AsyncDisposableStack,
): Promise<readonly Started[]> {
  const started: Started[] = [];
  for (const program of programs) {
    const running = await startProgram(bench, program).catch((error: Error) =>
      say(`${program.name}: ${error.message}`),
    );
    if (!running) continue;
    opened.use(running);
    started.push({ program, running });
  }
  return started;
}

/** The stream that a program must relay before it is measured. */
const proof = { stream: true, tokens: 10, itl: 1_000 } as const;

export async function startProgram(bench: Bench, program: Program): Promise<RunningProgram> {
  const own = join(bench.directory, `${program.name}-${process.hrtime.bigint()}`);
  mkdirSync(own, { recursive: true, mode: 0o755 });
  const running = await program.start({ port: bench.engine.port, model: "load", directory: own });
  pin(running.processes, bench.cores.load);
  const { result } = await measure(bench, running, { ...proof, connections: 1, each: 1, seconds: 10 });
  if (result.endings.whole === 1) return running;
  await running[Symbol.asyncDispose]();
  throw new Error(
    `${program.name} does not relay a whole stream: ${JSON.stringify(result.endings)} ${result.lastStatus}`,
  );
}

export async function runRounds(
  campaign: Campaign,
  scenarios: readonly Scenario[],
  started: readonly Started[],
): Promise<Sample[]> {
  const { bench, rounds, quick, random, takesPart, say } = campaign;
  const samples: Sample[] = [];
  const engine: RunningProgram = { ...nothing, port: bench.engine.port };
  const all = [
    { name: direct, running: engine, only: undefined },
    ...started.map(({ program, running }) => ({ name: program.name, running, only: program.scenarios })),
  ];
  await warm(campaign, started);
  for (let round = 1; round <= rounds; round++) {
    for (const { name: scenario, load } of shuffled(scenarios, random)) {
      const taking = all.filter(({ name, only }) => takesPart(scenario, name) && (only?.includes(scenario) ?? true));
      for (const { name, running } of shuffled(taking, random)) {
        await attempt(campaign, `round ${round} ${scenario} ${name}`, async () => {
          const measured = await onCoreOfItsOwn(bench, running, () =>
            measure(bench, running, quick ? quickLoad(load) : load),
          );
          const delays = measured.result.delayUs.buckets;
          const sample = { scenario, program: name, round, values: valuesOf(measured), delays };
          samples.push(sample);
          say(`round ${round} ${scenario} ${name}: ${brief(sample)}`);
        });
      }
    }
  }
  return samples;
}

/** Does the work and only reports a failure, so that earlier measurements are kept. */
export async function attempt({ say }: Pick<Campaign, "say">, what: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error: Error) => say(`${what}: ${error.message}`));
}

/** Moves a program's processes to the test core during the work. `direct` has no processes. */
export async function onCoreOfItsOwn<T>(bench: Bench, running: RunningProgram, work: () => Promise<T>): Promise<T> {
  pin(running.processes, bench.cores.test);
  try {
    return await work();
  } finally {
    pin(running.processes, bench.cores.load);
  }
}

/** Loads each program until its code is compiled, its connections are open and each key has been read once. */
async function warm({ bench, warmSeconds, say }: Campaign, started: readonly Started[]): Promise<void> {
  for (const { program, running } of started) {
    const seconds = warmSeconds / 2;
    await onCoreOfItsOwn(bench, running, async () => {
      await measure(bench, running, { connections: 64, tokens: 8, seconds });
      await measure(bench, running, { connections: 64, stream: true, tokens: 20, itl: 2_000, seconds });
    });
    say(`${program.name} ${running.version} is warm`);
  }
}

const nothing = { processes: {}, version: "", [Symbol.asyncDispose]: async () => {} };

const shownValues = [
  ...["cpuMicrosPerRequest", "cpuMicrosPerChunk", "requestsPerSecond", "chunksPerSecond"],
  ...["firstByteP50Us", "gapP99Us", "lost", "foreignCores"],
];

function brief({ values }: Sample): string {
  return shownValues
    .flatMap((name) => (values[name] === undefined ? [] : [`${name} ${values[name].toFixed(1)}`]))
    .join(", ");
}
