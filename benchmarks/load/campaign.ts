/**
 * The rounds: every program is started once and stays warm; in each round, for each scenario, they take their turns in
 * random order, so that what the machine does meets all of them. Who waits is moved off the core of who works.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRandom } from "@weiche/shared/testing/random.ts";
import type { Program, RunningProgram } from "../peers/program.ts";
import { measure, valuesOf, type Bench } from "./measure.ts";
import { compileNatives } from "./native/compile.ts";
import { startEngine } from "./native/run-load.ts";
import { chooseCores, descriptorsFor, pin, raiseDescriptors } from "./processes.ts";
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
  /** How long each program is loaded before its first round. */
  readonly warmSeconds: number;
  readonly seed: number;
}

export interface Campaign extends CampaignOptions {
  readonly bench: Bench;
  readonly directory: string;
  /** How many files one process may hold open. */
  readonly descriptors: number;
  readonly random: () => number;
  /** Whether this program is measured in this scenario. */
  readonly takesPart: (scenario: string, program: string) => boolean;
  readonly say: (line: string) => void;
}

/** The engine itself, asked directly: what client and engine do alone. */
export const direct = "direct";

/** With an engine that runs and a directory, both until `opened` is closed. */
export async function openCampaign(
  options: CampaignOptions & Pick<Campaign, "takesPart" | "say">,
  opened: AsyncDisposableStack,
): Promise<Campaign> {
  const natives = compileNatives();
  const cores = chooseCores();
  const descriptors = raiseDescriptors();
  const directory = mkdtempSync(join(tmpdir(), "weiche-bench-"));
  opened.defer(() => rmSync(directory, { recursive: true, force: true }));
  chmodSync(directory, 0o711);
  const engine = opened.use(await startEngine(natives, cores.load));
  const random = createRandom(options.seed);
  return { ...options, bench: { natives, cores, engine }, directory, descriptors, random: () => random.next() };
}

/** Whether a program may hold so many streams open; if not, says so. */
export function mayHold({ say, descriptors }: Campaign, program: Program, streams: number): boolean {
  const needed = descriptorsFor(streams, program.connectionsPerStream);
  if (descriptors >= needed) return true;
  say(
    `${program.name} with ${streams} streams is left out: ${descriptors} file descriptors per process (ulimit -n), ${needed} are needed`,
  );
  return false;
}

/** Starts what can be started, parked on the core of the load; what fails is told and left out. */
export async function startPrograms(
  { bench, directory, say }: Campaign,
  programs: readonly Program[],
  opened: AsyncDisposableStack,
): Promise<readonly Started[]> {
  const started: Started[] = [];
  for (const program of programs) {
    const running = await startProgram(bench, program, directory).catch((error: Error) =>
      say(`${program.name}: ${error.message}`),
    );
    if (!running) continue;
    opened.use(running);
    started.push({ program, running });
  }
  return started;
}

/** Every program passes one stream on before anything is measured of it. */
const proof = { stream: true, tokens: 10, itl: 1_000 } as const;

export async function startProgram(bench: Bench, program: Program, directory: string): Promise<RunningProgram> {
  const own = join(directory, `${program.name}-${process.hrtime.bigint()}`);
  mkdirSync(own, { recursive: true, mode: 0o755 });
  const running = await program.start({ port: bench.engine.port, model: "load", directory: own });
  pin(running.processes, bench.cores.load);
  const { result } = await measure(bench, running, { ...proof, connections: 1, each: 1, seconds: 10 });
  if (result.endings.whole === 1) return running;
  await running[Symbol.asyncDispose]();
  throw new Error(`it does not pass a stream on as it should: ${JSON.stringify(result.endings)} ${result.lastStatus}`);
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

/** What fails is told, and missing in the report: the hour before was not for nothing. */
export async function attempt({ say }: Campaign, what: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error: Error) => say(`${what}: ${error.message}`));
}

/** Programs above the engine only: `direct` has no processes of its own. */
export async function onCoreOfItsOwn<T>(bench: Bench, running: RunningProgram, work: () => Promise<T>): Promise<T> {
  pin(running.processes, bench.cores.test);
  try {
    return await work();
  } finally {
    pin(running.processes, bench.cores.load);
  }
}

/** Code is compiled, connections are open, and every key has been read from the database once. */
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

function brief({ values }: Sample): string {
  const shown = [
    "cpuMicrosPerRequest",
    "cpuMicrosPerChunk",
    "requestsPerSecond",
    "chunksPerSecond",
    "firstByteP50Us",
    "gapP99Us",
    "lost",
    "foreignCores",
  ];
  return shown.flatMap((name) => (values[name] === undefined ? [] : [`${name} ${values[name].toFixed(1)}`])).join(", ");
}
