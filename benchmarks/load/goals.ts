/**
 * The goals of the bench. Most are ratios of two programs in the same round, because absolute values depend on the machine.
 * The cost of a part of Weiche is a difference. Also computes how Weiche's part of a ratio changes between commits. Pure.
 */
import { direct, type Sample } from "./campaign.ts";
import { pairDifferences, pairRatios, spreadOf, type Spread, type Value } from "./statistics.ts";

interface Goal {
  /** Never changes, because results of different days are compared by it. */
  readonly id: string;
  readonly what: string;
  readonly sense: "at most" | "at least";
  readonly goal: number;
  readonly unit: string;
  /** One value, or two values whose ratio is computed round by round. One value depends on the machine. */
  readonly of: readonly [Operand, Operand?];
  /** The goal is the difference of the two values in place of their ratio. */
  readonly isDifference?: true;
}

export interface GoalResult extends Omit<Goal, "of"> {
  readonly isRatio: boolean;
  /** Undefined if it was not measured in this run. */
  readonly reached?: Spread;
  readonly isMet?: boolean;
}

export function judgeGoals(samples: readonly Sample[]): GoalResult[] {
  return goals.map(({ of: [one, other], ...goal }) => {
    const values = valuesIn(samples, one);
    const compare = goal.isDifference ? pairDifferences : pairRatios;
    const reached = other ? compare(values, valuesIn(samples, other)) : spreadOf(values.map(({ value }) => value));
    const result = { ...goal, isRatio: other !== undefined && !goal.isDifference };
    if (!reached) return result;
    const isMet = goal.sense === "at most" ? reached.median <= goal.goal : reached.median >= goal.goal;
    return { ...result, reached, isMet };
  });
}

/** Returns whether `changesOf` needs the program in the scenario, as Weiche's part of a ratio or as the engine alone. */
export function isChanging(scenario: string, program: string): boolean {
  return ratios.some((goal) => {
    const part = partOfWeiche(goal);
    return part.scenario === scenario && (part.program === program || (part.added === true && program === direct));
  });
}

/** The change of Weiche's part of a ratio between two versions in the same rounds. */
export interface Change extends Pick<Goal, "id" | "what"> {
  /** The factor of worsening: 1.2 is a fifth worse, for a higher cost as for a lower rate. */
  readonly worse: Spread;
}

/**
 * Returns the change of each ratio of these scenarios. The other part of a ratio is equal for both versions and cancels
 * out. Throws if a value was not measured.
 */
export function changesOf(scenarios: readonly string[], now: readonly Sample[], before: readonly Sample[]): Change[] {
  const asked = ratios.filter((goal) => scenarios.includes(partOfWeiche(goal).scenario));
  return asked.map((goal) => {
    const { id, what, sense } = goal;
    const part = partOfWeiche(goal);
    const isCost = (sense === "at most") === (part === goal.of[0]);
    const [above, below] = isCost ? [now, before] : [before, now];
    const worse = pairRatios(valuesIn(above, part), valuesIn(below, part));
    if (!worse) throw new Error(`not measured: ${part.program} in ${part.scenario} (${part.metrics.join(" + ")})`);
    return { id, what, worse };
  });
}

/** Returns Weiche's part of a ratio. If both parts are Weiche's, it is the first. */
function partOfWeiche({ of }: Goal): Operand {
  return of.find((part) => part?.program === "weiche" || part?.program === "weiche-plain")!;
}

interface Operand {
  readonly scenario: string;
  readonly program: string;
  /** The metrics to add. */
  readonly metrics: readonly string[];
  /** Whether the value of the engine alone in the same round is subtracted. */
  readonly added?: true;
}

/** Returns an operand. `where`: scenario and program. */
function part(where: string, ...metrics: readonly string[]): Operand {
  const [scenario, program] = where.split(" ") as [string, string];
  return { scenario, program, metrics };
}

function added(where: string, metric: string): Operand {
  return { ...part(where, metric), added: true };
}

function valuesIn(samples: readonly Sample[], { scenario, program, metrics, added: less }: Operand): Value[] {
  const base = less ? valuesIn(samples, { scenario, program: direct, metrics }) : [];
  return samples.flatMap((sample) => {
    if (sample.scenario !== scenario || sample.program !== program) return [];
    const parts = metrics.map((metric) => sample.values[metric]);
    if (parts.some((part) => part === undefined)) return [];
    const value = parts.reduce<number>((sum, part) => sum + part!, 0);
    const alone = less ? base.find(({ round }) => round === sample.round)?.value : 0;
    return alone === undefined ? [] : [{ round: sample.round, value: value - alone }];
  });
}

/** Returns the time in µs that the program adds to the engine's own first byte. */
export function addedFirstByte(samples: readonly Sample[], program: string): Spread | undefined {
  return spreadOf(valuesIn(samples, added(`first-byte ${program}`, "firstByteP50Us")).map(({ value }) => value));
}

type Bound = Pick<Goal, "sense" | "goal" | "unit">;

function atMost(goal: number, unit = "×"): Bound {
  return { sense: "at most", goal, unit };
}

function atLeast(goal: number, unit = "×"): Bound {
  return { sense: "at least", goal, unit };
}

const perChunk = "cpuMicrosPerChunk";
const perRequest = "cpuMicrosPerRequest";
const busy = "stream-256x20";
const quietStreams = "stream-64x10";
const router = (metric: string) => `${metric} router`;
const database = (metric: string) => `${metric} database`;

export const goals: readonly Goal[] = [
  {
    ...{ id: "json-portkey", what: "JSON requests a second: router and agent, of Portkey alone", ...atLeast(2) },
    of: [part("json-64 weiche", "requestsPerSecond"), part("json-64 portkey", "requestsPerSecond")],
  },
  {
    ...{
      id: "json-hops",
      what: "CPU per JSON request: all of Weiche, of two bare HTTP/2 hops with TLS",
      ...atMost(1.3),
    },
    of: [part("json-64 weiche", perRequest), part("json-64 hops-h2-tls", perRequest)],
  },
  {
    ...{ id: "json-router-portkey", what: "CPU per JSON request: Portkey, of the router alone", ...atLeast(8) },
    of: [part("json-64 portkey", perRequest), part("json-64 weiche", router(perRequest))],
  },
  {
    ...{ id: "chunk-nginx", what: "CPU per chunk: the router, of nginx", ...atMost(1.5) },
    of: [part(`${busy} weiche-plain`, router(perChunk)), part(`${busy} nginx`, perChunk)],
  },
  {
    ...{ id: "chunk-nginx-64", what: "the same with 64 streams at 10 ms", ...atMost(1.5) },
    of: [part(`${quietStreams} weiche-plain`, router(perChunk)), part(`${quietStreams} nginx`, perChunk)],
  },
  {
    ...{
      id: "chunk-leg",
      what: "CPU per chunk: router, agent and TLS, of two bare hops over HTTP/1.1 and TLS",
      ...atMost(0.6),
    },
    of: [part(`${busy} weiche`, router(perChunk), `${perChunk} agent`), part(`${busy} hops-h1-tls`, perChunk)],
  },
  {
    ...{ id: "chunk-hops", what: "the same, of two bare hops over HTTP/2 and TLS", ...atMost(0.9) },
    of: [part(`${busy} weiche`, router(perChunk), `${perChunk} agent`), part(`${busy} hops-h2-tls`, perChunk)],
  },
  {
    ...{ id: "gap", what: "p99 gap of 256 streams, a token each 20 ms", ...atMost(26_000, "µs") },
    of: [part(`${busy} weiche`, "gapP99Us")],
  },
  {
    ...{ id: "chunk-portkey", what: "CPU per chunk: router, agent and TLS, of Portkey alone", ...atMost(1) },
    of: [part(`${quietStreams} weiche`, perChunk), part(`${quietStreams} portkey`, perChunk)],
  },
  {
    ...{
      id: "chunk-metering",
      what: "CPU per chunk of the router with its database: of the router without keys, limits, metering",
      ...atMost(1.05),
    },
    of: [
      part(`${busy} weiche-plain`, router(perChunk), database(perChunk)),
      part(`${busy} bare-router`, router(perChunk)),
    ],
  },
  {
    ...{ id: "request-metering", what: "the same per JSON request, without its database", ...atMost(1.35) },
    of: [part("json-64 weiche-plain", router(perRequest)), part("json-64 bare-router", router(perRequest))],
  },
  {
    ...{ id: "store-first-byte", what: "first byte: time added by a shared store of limits", ...atMost(600, "µs") },
    of: [part("first-byte weiche-store", "firstByteP50Us"), part("first-byte weiche", "firstByteP50Us")],
    isDifference: true,
  },
  {
    ...{ id: "store-request", what: "the router's CPU per JSON request: time added by the store", ...atMost(25, "µs") },
    of: [part("json-64 weiche-store", router(perRequest)), part("json-64 weiche", router(perRequest))],
    isDifference: true,
  },
  {
    ...{ id: "first-byte-hops", what: "first byte added: router and agent, of two bare HTTP/2 hops", ...atMost(1.4) },
    of: [added("first-byte weiche-plain", "firstByteP50Us"), added("first-byte hops-h2", "firstByteP50Us")],
  },
  {
    ...{ id: "first-byte-portkey", what: "first byte added: Portkey, of router and agent", ...atLeast(60) },
    of: [added("first-byte portkey", "firstByteP50Us"), added("first-byte weiche", "firstByteP50Us")],
  },
  {
    ...{
      id: "streams-portkey",
      what: "most streams of 40 tokens/s: one router core (computed), of Portkey",
      ...atLeast(5),
    },
    of: [part("most-streams weiche", "streamsPerRouterCore"), part("most-streams portkey", "streams")],
  },
  {
    ...{
      id: "streams-nginx",
      what: "most streams of 40 tokens/s: one router core (computed), of nginx",
      ...atLeast(1),
    },
    of: [part("most-streams weiche", "streamsPerRouterCore"), part("most-streams nginx", "streams")],
  },
  {
    ...{ id: "memory-5000", what: "router's memory per idle stream, 5,000 open", ...atMost(18, "KB") },
    of: [part("memory-5000 weiche", "kilobytesPerStream router")],
  },
  {
    ...{ id: "lost-10000", what: "10,000 idle streams: lost", ...atMost(0, "streams") },
    of: [part("memory-10000 weiche", "lost")],
  },
  {
    ...{
      id: "beside",
      what: "CPU per JSON request beside 6,000 open streams, divided by the CPU without streams",
      ...atMost(1.1),
    },
    of: [part("json-beside-6000 weiche", perRequest), part("json-beside-0 weiche", perRequest)],
  },
  {
    ...{ id: "switch", what: "a switch less the engine's wake and first token, p99", ...atMost(50, "ms") },
    of: [part("switch weiche", "aboveWakeP99Ms")],
  },
  {
    ...{
      id: "switch-ours",
      what: "the same, less the old engine's sleep and the probe's token too",
      ...atMost(50, "ms"),
    },
    of: [part("switch weiche", "oursP99Ms")],
  },
  {
    ...{ id: "usage", what: "usage records into the embedded PostgreSQL", ...atLeast(5_000, "a second") },
    of: [part("usage weiche", "recordsPerSecond")],
  },
  {
    ...{ id: "usage-loop", what: "meanwhile the event loop is busy at a stretch for", ...atMost(20, "ms") },
    of: [part("usage weiche", "loopBusyMaxMs")],
  },
];

const ratios = goals.filter(({ of, isDifference }) => of.length === 2 && !isDifference);
