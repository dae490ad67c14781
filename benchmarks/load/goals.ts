/**
 * The numbers to reach, as functions of the samples: mostly ratios of two programs in the same round, since absolute
 * values belong to a machine; and how Weiche's part of a ratio changed from one commit to another. Pure.
 */
import { direct, type Sample } from "./campaign.ts";
import { pairRatios, spreadOf, type Spread, type Value } from "./statistics.ts";

export interface Goal {
  /** Stable: results of other days are compared by it. */
  readonly id: string;
  readonly what: string;
  readonly sense: "at most" | "at least";
  readonly goal: number;
  readonly unit: string;
  /** Of two programs; else one value, which belongs to a machine. */
  readonly isRatio: boolean;
  /** What it is made of. */
  readonly operands: readonly Operand[];
  readonly reached: (samples: readonly Sample[]) => Spread | undefined;
}

export interface GoalResult extends Omit<Goal, "operands" | "reached"> {
  /** Absent: not measured in this run. */
  readonly reached?: Spread;
  readonly isMet?: boolean;
}

export function judgeGoals(samples: readonly Sample[]): GoalResult[] {
  return goals.map(({ reached: find, operands: _operands, ...goal }) => {
    const reached = find(samples);
    if (!reached) return goal;
    const { median } = reached;
    return { ...goal, reached, isMet: goal.sense === "at most" ? median <= goal.goal : median >= goal.goal };
  });
}

/** What has to be measured for `changesOf`: Weiche's part of each ratio, and the engine alone where that is taken off. */
export function isChanging(scenario: string, program: string): boolean {
  return ratios.some(({ operands }) => {
    const part = partOfWeiche(operands);
    return part.scenario === scenario && (part.program === program || (part.added === true && program === direct));
  });
}

/** By how much Weiche's part of a ratio is worse in `now` than in `before`, two runs in the same rounds of one machine. */
export interface Change extends Pick<Goal, "id" | "what"> {
  /** 1.2: a fifth worse, whether it is a cost that has grown or a rate that has sunk. */
  readonly worse: Spread;
}

/**
 * One for each ratio of these scenarios. The other part of a ratio is its yardstick, the same for both, and cancels out.
 * Throws for what was not measured.
 */
export function changesOf(scenarios: readonly string[], now: readonly Sample[], before: readonly Sample[]): Change[] {
  const asked = ratios.filter(({ operands }) => scenarios.includes(partOfWeiche(operands).scenario));
  return asked.map(({ id, what, sense, operands }) => {
    const part = partOfWeiche(operands);
    const isCost = (sense === "at most") === (part === operands[0]);
    const [above, below] = isCost ? [now, before] : [before, now];
    const worse = pairRatios(valuesIn(above, part), valuesIn(below, part));
    if (!worse) throw new Error(`not measured: ${part.program} in ${part.scenario} (${part.metrics.join(" + ")})`);
    return { id, what, worse };
  });
}

/** The first: what is compared with ourselves in other circumstances is compared with these. */
function partOfWeiche(operands: readonly Operand[]): Operand {
  return operands.find(({ program }) => program === "weiche" || program === "weiche-plain")!;
}

interface Operand {
  readonly scenario: string;
  readonly program: string;
  /** Several are added up. */
  readonly metrics: readonly string[];
  /** Less what the engine alone takes in the same round. */
  readonly added?: true;
}

function of(scenario: string, program: string, ...metrics: readonly string[]): Operand {
  return { scenario, program, metrics };
}

function added(scenario: string, program: string, metric: string): Operand {
  return { scenario, program, metrics: [metric], added: true };
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

type Bound = Pick<Goal, "sense" | "goal" | "unit">;

function atMost(goal: number, unit = "×"): Bound {
  return { sense: "at most", goal, unit };
}

function atLeast(goal: number, unit = "×"): Bound {
  return { sense: "at least", goal, unit };
}

function ratio(id: string, what: string, bound: Bound, a: Operand, b: Operand): Goal {
  const reached = (samples: readonly Sample[]) => pairRatios(valuesIn(samples, a), valuesIn(samples, b));
  return { id, what, ...bound, isRatio: true, operands: [a, b], reached };
}

function absolute(id: string, what: string, bound: Bound, a: Operand): Goal {
  const reached = (samples: readonly Sample[]) => spreadOf(valuesIn(samples, a).map(({ value }) => value));
  return { id, what, ...bound, isRatio: false, operands: [a], reached };
}

const perChunk = "cpuMicrosPerChunk";
const perRequest = "cpuMicrosPerRequest";
const busy = "stream-256x20";
const quietStreams = "stream-64x10";
const router = (metric: string) => `${metric} router`;
const database = (metric: string) => `${metric} database`;

export const goals: readonly Goal[] = [
  ratio(
    "json-portkey",
    "JSON requests a second: router and agent, of Portkey alone",
    atLeast(4),
    of("json-64", "weiche", "requestsPerSecond"),
    of("json-64", "portkey", "requestsPerSecond"),
  ),
  ratio(
    "json-router-portkey",
    "CPU per JSON request: Portkey, of the router alone",
    atLeast(8),
    of("json-64", "portkey", perRequest),
    of("json-64", "weiche", router(perRequest)),
  ),
  ratio(
    "chunk-nginx",
    "CPU per chunk: the router, of nginx",
    atMost(1.5),
    of(busy, "weiche-plain", router(perChunk)),
    of(busy, "nginx", perChunk),
  ),
  ratio(
    "chunk-nginx-64",
    "the same with 64 streams at 10 ms",
    atMost(1.5),
    of(quietStreams, "weiche-plain", router(perChunk)),
    of(quietStreams, "nginx", perChunk),
  ),
  ratio(
    "chunk-leg",
    "CPU per chunk: router, agent and TLS, of two bare hops over HTTP/1.1 and TLS",
    atMost(0.6),
    of(busy, "weiche", router(perChunk), `${perChunk} agent`),
    of(busy, "hops-h1-tls", perChunk),
  ),
  ratio(
    "chunk-portkey",
    "CPU per chunk: router, agent and TLS, of Portkey alone",
    atMost(1),
    of(quietStreams, "weiche", perChunk),
    of(quietStreams, "portkey", perChunk),
  ),
  ratio(
    "chunk-metering",
    "CPU per chunk of the router with its database: of the router without keys, limits, metering",
    atMost(1.1),
    of(busy, "weiche-plain", router(perChunk), database(perChunk)),
    of(busy, "bare-router", router(perChunk)),
  ),
  ratio(
    "request-metering",
    "the same per JSON request, without its database",
    atMost(1.35),
    of("json-64", "weiche-plain", router(perRequest)),
    of("json-64", "bare-router", router(perRequest)),
  ),
  ratio(
    "first-byte-hops",
    "first byte added: router and agent, of two bare HTTP/2 hops",
    atMost(1.5),
    added("first-byte", "weiche-plain", "firstByteP50Us"),
    added("first-byte", "hops-h2", "firstByteP50Us"),
  ),
  ratio(
    "first-byte-portkey",
    "first byte added: Portkey, of router and agent",
    atLeast(60),
    added("first-byte", "portkey", "firstByteP50Us"),
    added("first-byte", "weiche", "firstByteP50Us"),
  ),
  ratio(
    "streams-portkey",
    "most streams at 20 ms: one router core (computed), of Portkey",
    atLeast(5),
    of("most-streams", "weiche", "streamsPerRouterCore"),
    of("most-streams", "portkey", "streams"),
  ),
  ratio(
    "streams-nginx",
    "most streams at 20 ms: one router core (computed), of nginx",
    atLeast(0.5),
    of("most-streams", "weiche", "streamsPerRouterCore"),
    of("most-streams", "nginx", "streams"),
  ),
  absolute(
    "memory-5000",
    "router's memory per idle stream, 5,000 open",
    atMost(22, "KB"),
    of("memory-5000", "weiche", "kilobytesPerStream router"),
  ),
  absolute("lost-10000", "10,000 idle streams: lost", atMost(0, "streams"), of("memory-10000", "weiche", "lost")),
  ratio(
    "beside",
    "CPU per JSON request beside 6,000 open streams, of none",
    atMost(1.1),
    of("json-beside-6000", "weiche", perRequest),
    of("json-beside-0", "weiche", perRequest),
  ),
  absolute("switch", "our own share of a switch, p99", atMost(50, "ms"), of("switch", "weiche", "oursP99Ms")),
  absolute(
    "usage",
    "usage records into the embedded PostgreSQL",
    atLeast(5_000, "a second"),
    of("usage", "weiche", "recordsPerSecond"),
  ),
  absolute(
    "usage-loop",
    "meanwhile the event loop is busy at a stretch for",
    atMost(20, "ms"),
    of("usage", "weiche", "loopBusyMaxMs"),
  ),
];

const ratios = goals.filter(({ isRatio }) => isRatio);
